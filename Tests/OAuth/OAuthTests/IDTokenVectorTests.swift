import Cryptography
import FoundationEssentials
import OAuth
import RingbackBase
import Testing

private let vectors = VectorFile.all(in: "id-tokens")
private let good = vectors.filter { $0["expect"] == "accepted" }
private let bad = vectors.filter { $0["expect"]?.hasPrefix("refused ") ?? false }

private let keySets: [String: JSONWebKeySet] = {
    var sets: [String: JSONWebKeySet] = [:]
    for name in Set(vectors.compactMap { $0["keys"] }) {
        let bytes = VectorFile.bytes(of: "id-tokens/\(name)")
        sets[name] = bytes.flatMap { try? JSONWebKeySet(json: JSON(parsing: $0)) }
    }
    return sets
}()

private func expectations(_ vector: VectorFile) throws -> IDTokenExpectations {
    let algorithms = (vector["algorithms"] ?? "").split(separator: " ").map(String.init)
    return IDTokenExpectations(
        issuer: try #require(vector["issuer"]), clientID: try #require(vector["client_id"]),
        nonce: vector["nonce"].map { Secret($0) }, now: try #require(vector.number("now")),
        leeway: try #require(vector.number("leeway")), accessToken: vector["access_token"].map { Secret($0) },
        code: vector["code"].map { Secret($0) },
        previous: vector["previous_subject"].map { subject in
            let audience = (vector["previous_audience"] ?? "").split(separator: " ").map(String.init)
            return .init(
                subject: subject, audience: Set(audience), authenticationTime: vector.number("previous_auth_time"),
                authorizedParty: vector["previous_azp"], nonce: vector["previous_nonce"].map { Secret($0) },
                issuer: vector["previous_issuer"])
        },
        allowedAlgorithms: Set(algorithms.compactMap(SignatureAlgorithm.init(rawValue:))),
        maxAge: vector.number("max_age"))
}

/// Nil for a token that is believed; else what is at fault.
private func fault(_ vector: VectorFile) throws -> String? {
    let keys = try #require(keySets[vector["keys"] ?? ""])
    do {
        _ = try IDToken.verify(Secret(bytes: vector.content), keys: keys, expecting: expectations(vector))
        return nil
    } catch OAuthError.invalidIDToken(let part, let reason) {
        #expect(!reason.isEmpty)
        return part
    } catch OAuthError.otherSubject {
        return "sub"
    }
}

@Suite struct `ID token vectors` {
    @Test func `there are three hundred to refuse and sixty to accept, and nothing between`() {
        #expect(bad.count >= 300)
        #expect(good.count >= 60)
        #expect(good.count + bad.count == vectors.count)
        #expect(
            vectors.allSatisfy { vector in
                vector.name.hasPrefix("good-") == (vector["expect"] == "accepted") && !(vector["rule"] ?? "").isEmpty
            })
    }

    @Test func `no two cases are the same`() {
        var seen: [[UInt8]: String] = [:]
        for vector in vectors {
            let head = vector.head.filter { !["about", "rule"].contains($0.name) }
            let whole = Array("\(head)".utf8) + vector.content
            let other = seen.updateValue(vector.name, forKey: whole)
            #expect(other == nil, "\(vector.name) repeats \(other ?? "")")
        }
    }

    @Test(arguments: good) func `a token of a real provider is believed`(vector: VectorFile) throws {
        #expect(try fault(vector) == nil)
    }

    /// FAPI-04, FAPI-05, FAPI-11, FAPI-12, FAPI-14.
    @Test(arguments: bad) func `PR-12, PR-24, NAT-55: a token that breaks a rule is refused for it`(vector: VectorFile)
        throws
    {
        let part = try fault(vector)
        #expect(part.map { "refused \($0)" } == vector["expect"])
    }

    @Test(arguments: vectors.filter { $0["fetch_keys"] != nil })
    func `MD-07: new keys are fetched where they can help`(vector: VectorFile) throws {
        let keys = try #require(keySets[vector["keys"] ?? ""])
        let isMissing = IDToken.isKeyMissing(for: Secret(bytes: vector.content), in: keys)
        #expect(isMissing == (vector["fetch_keys"] == "yes"))
    }
}
