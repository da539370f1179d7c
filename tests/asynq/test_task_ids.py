from uuid import UUID

from junhong_cmp.asynq.task_ids import new_id, new_ids


def test_ids_are_random_uuids_of_version_4() -> None:
    made = [*new_ids(500), *(new_id() for _ in range(500))]
    assert len(set(made)) == 1000
    for text in made:
        assert str(UUID(text)) == text
        assert UUID(text).version == 4
        assert UUID(text).variant == "specified in RFC 4122"
