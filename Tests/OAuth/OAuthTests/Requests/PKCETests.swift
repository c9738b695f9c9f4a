import RingbackBase
import Testing

@testable import OAuth

@Suite struct `Proof key for code exchange` {
    @Test func `the challenge of RFC 7636 appendix B`() {
        let pkce = PKCE(verifier: Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
        #expect(pkce.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test func `NAT-11: a verifier is 43 characters, and no two are the same`() {
        let verifiers = (0..<100).map { _ in PKCE().verifier }
        #expect(Set(verifiers).count == 100)
        for verifier in verifiers {
            #expect(verifier.count == 43)
            #expect(
                verifier.revealed().utf8.allSatisfy {
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8.contains($0)
                })
        }
    }
}
