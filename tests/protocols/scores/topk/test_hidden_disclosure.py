"""Every message of hidden queries is declared."""

from protocols.scores.topk import messages
from protocols.scores.topk.disclosure import HIDDEN_QUERIES, TOP_K


def test_hidden_queries_declare_what_they_add_to_a_selection() -> None:
    assert HIDDEN_QUERIES.fields.keys() - TOP_K.fields.keys() == {messages.MaskedTable, messages.DealtProduct}
