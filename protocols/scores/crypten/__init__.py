"""The k best positions by CrypTen: clients compute on shares, the server's dealer gives them randomness.

For people who build on CrypTen, and as the peer that other backends are measured against. Every client is a process of
its own and a rank of a process group of torch; the server's dealer is the last rank, CrypTen's trusted third party.

    asking     as in every backend (`protocols.scores.asking`)
    joining    clients exchange ring keys, sealed, and agree on keys with the dealer; the group meets at the first rank
    computing  CrypTen's products and comparisons on shares (`protocols.scores.crypten.selection`)
    answers    every scorer seals its shares of the answers for the asker, and the server carries them

Parties:     2 or more scorers with channels to each other and to the asker, 1 asker, 1 server with a dealer.
Adversary:   the server alone, or clients without the server, all but one of them, semi-honest.
Reveals:     to the server who takes part, N, Q, k, and when who asks. To the asker the k best positions of each query,
             in order, fewer if fewer have a score, and so that somebody scores them this high. To other clients, if
             holders are counted, of every position how many other scorers hold it, up to `least` - 1. No comparison is
             opened.
Assumes:     X25519 (CDH), HKDF-SHA256, AES-256-GCM, AES-256 as a pseudorandom generator; that the server cannot read
             the traffic between ranks.
Not covered: the server together with one client, or with anybody who reads the traffic between ranks, reads every
             client's scores: the dealer knows all masks. That traffic (gloo, over TCP) is neither encrypted nor
             authenticated. It stays on the loopback interface, unless `GLOO_SOCKET_IFNAME` names another one. Who
             can connect to a port of that interface can break or falsify a batch. Active parties of any kind: false
             randomness or shares give a false answer that nobody notices. Wrong scores.
Reference:   Knott et al. 2021, CrypTen; its release 0.4.1. Batcher 1968 for bitonic merges.
Deviations:  from CrypTen as it comes, each for a fault of it:

    fault                                                        here
    shares and masks from Mersenne Twisters with 32-bit seeds    AES-256 keystreams under 256-bit keys (`generators`)
    seeds of masks exchanged in clear                            sealed between clients, agreed on with the dealer
    opening to one rank leaves plaintext in other ranks' memory  shares are sealed for the asker, who adds them up
    the first rank deals by default, and so reads all            a dealer that is no rank which computes (`dealt`)
    two neighbours in the ring open a party's input              no sharing by the ring is ever opened: what is opened
                                                                 lies under the dealer's masks (`selection`)
    requests to the dealer are pickled                           whole numbers, checked (`dealt.read_request`)
    fixed point that truncates, products that fail now and then  whole numbers modulo 2^64, refused if they could
                                                                 overflow (`position_keys`)
    no top-k; argmax breaks ties at random                       a tournament on keys that differ in pairs

A client that drops out breaks the group for everybody. The batch is then asked again under the next round's number, by
those who are left, with fresh keys throughout.

The server's process loads neither torch nor CrypTen: its dealer is a process that it starts (`dealing`, `dealer`).
"""
