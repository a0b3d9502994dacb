"""Models whose owner wants to know who has them: the token, whom it is sent to, and a refusal."""

import pytest

from tests.local_models.conftest import GATED, Desk


async def test_a_token_goes_to_the_source_and_to_no_other(desk: Desk) -> None:
    await desk.app.services.credentials.set("provider.huggingface", "hf_secret_token")
    elsewhere = f"{desk.mirror.url}/test/{GATED}/resolve/main/model.bin"
    desk.served("model.bin", GATED).location = elsewhere
    model = await desk.downloaded(GATED)
    assert model["status"] == "installed" and model["gated"]
    assert {ask.authorization for ask in desk.source.asked} == {"Bearer hf_secret_token"}
    assert [ask.authorization for ask in desk.mirror.asked] == [None]
    desk.source.asked.clear()
    await desk.downloaded()
    assert {ask.authorization for ask in desk.source.asked} == {None}


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("token", "reason"), [(None, "token_missing"), ("hf_secret", "token_refused")]
)
async def test_a_refusal_of_the_owner_says_what_can_be_done(
    desk: Desk, status: int, token: str | None, reason: str
) -> None:
    if token:
        await desk.app.services.credentials.set("provider.huggingface", token)
    for mirror in (False, True):
        desk.served("config.json", GATED, mirror).status = status
        desk.served("config.json", mirror=mirror).status = status
    error = (await desk.downloaded(GATED))["download"]["error"]
    assert (error["code"], error["details"]["reason"]) == ("MODEL_DOWNLOAD_FAILED", reason)
    assert error["details"]["page_url"] == "https://example.org/agree"
    assert "access token" in error["details"]["explanation"]
    told = (await desk.events(GATED))[-1].wire_data()["error"]
    assert told["details"]["explanation"] == error["details"]["explanation"]
    # For others a refusal is one like any.
    assert "reason" not in (await desk.downloaded())["download"]["error"]["details"]


async def test_a_mirror_never_gets_the_token_of_the_hub(desk: Desk) -> None:
    await desk.app.services.credentials.set("provider.huggingface", "hf_secret_token")
    desk.served("config.json", GATED).status = 404
    assert (await desk.downloaded(GATED))["status"] == "installed"
    assert [ask.path for ask in desk.mirror.asked] == [f"/test/{GATED}/resolve/main/config.json"]
    assert [ask.authorization for ask in desk.mirror.asked] == [None]
    assert {ask.authorization for ask in desk.source.asked} == {"Bearer hf_secret_token"}
