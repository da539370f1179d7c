from junhong_cmp.gateway.drivers.ctcc_body import read_reply
from junhong_cmp.gateway.simulators.ctcc_results import order_result, sentence


def test_what_is_written_can_be_read_whatever_it_says() -> None:
    reply = read_reply(order_result("transient", "9001", "系统<忙>&").body)
    assert (reply.code, reply.text) == ("9001", "系统<忙>&")
    assert read_reply(sentence("x", "-4", "没有").body).code == "-4"
    assert read_reply(sentence("x", "", "没有").body).text == "没有"
