"""An account is given another credential while calls go on."""

import pytest
from tests.gateway.clients import ACCOUNT, CARD

from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.gateway.errors import AuthRejected
from junhong_cmp.gateway.http import open_http_gateway
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig

OLD = {
    "generic": Credential("demo", "canary-old-secret-of-the-tests"),
    "onelink": Credential("200000000001", "canary-old"),
    "unicom": Credential("app.open-id", "canary-old"),
    "ctcc": Credential("user", "canary-oldwordabcdefghi"),
}
NEW = {
    "generic": Credential("demo-2", "canary-new-secret-of-the-tests"),
    "onelink": Credential("200000000001", "canary-new"),
    "unicom": Credential("app.open-id", "canary-new"),
    "ctcc": Credential("user", "canary-newwordabcdefghi"),
}


@pytest.mark.parametrize("driver", sorted(DRIVERS))
async def test_the_next_call_after_a_change_is_made_with_the_new_credential(driver: str) -> None:
    simulator = CarrierSimulator(SimulatorConfig(credential=NEW[driver], driver=driver))
    await simulator.start()
    gateway = open_http_gateway(
        base_url=simulator.url,
        credentials={"old": OLD[driver], "new": NEW[driver]},
        default_credential=None,
        allow_http=True,
    )
    account = ACCOUNT._replace(driver=driver, credential_ref="old")
    await gateway.open()
    try:
        for _ in range(2):
            with pytest.raises(AuthRejected):
                await gateway.query_usage(account, CARD)
        answer = await gateway.query_usage(account._replace(credential_ref="new"), CARD)
        assert answer.iccid == CARD.iccid
        with pytest.raises(AuthRejected):
            await gateway.query_usage(account, CARD)
    finally:
        await gateway.close()
        await simulator.stop()
