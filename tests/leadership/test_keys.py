from redis.crc import key_slot

from junhong_cmp.leadership import keys


def test_both_keys_of_a_script_lie_in_one_slot() -> None:
    assert key_slot(keys.lease().encode()) == key_slot(keys.standbys().encode())
