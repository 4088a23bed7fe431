"""What is known of an object goes with the object: another one at its address is a stranger."""

import gc

from floorit.record.known import Known


class Thing:
    def __eq__(self, other):
        raise AssertionError("no code of theirs runs")

    __hash__ = None


def test_it_is_found_by_identity_and_gone_with_the_object():
    known, thing = Known(), Thing()
    assert known.learn(thing, 5) == 5
    key = id(thing)
    assert known.get(key) == 5
    del thing
    gc.collect()
    assert known.get(key) is None
    assert not known._alive


def test_it_can_be_learned_anew_after_all_was_forgotten():
    known, thing = Known(), Thing()
    known.learn(thing, 1)
    known.clear()
    assert known.get(id(thing)) is None
    known.learn(thing, 2)
    assert known.get(id(thing)) == 2
    del thing
    assert not known
