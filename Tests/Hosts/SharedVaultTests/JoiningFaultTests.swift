import Cryptography
import RingbackBase
import SessionVault
import Testing

@testable import SharedVault

@Suite struct `A host that is killed while it joins` {
    /// Joins with a process that is killed after so many calls of its vault and its database, then with another one.
    private func join(killedAfter count: Int, isFirst: Bool) async throws -> Bool {
        let owner = Owner()
        let one = isFirst ? nil : try await owner.first()
        let (memory, life) = (MemoryVault(), Life())
        let password = owner.hosts.invite("two").password
        life.killAfter = count
        let doomed = owner.vault("two", Spool(memory, life)) { _ in life.passes() ? .none : .notReached }
        let joined = try? await doomed.join(as: nil, otherwise: "two", invitation: password)
        _ = try? await doomed.open(passphrase: nil)

        let again = owner.vault("two", memory)
        // As the daemon does at its start.
        _ = try? await again.open(passphrase: nil)
        let rejoined = try await again.join(as: nil, otherwise: "two", invitation: password)
        if let code = joined?.code { #expect(rejoined.code == code) }
        if let one {
            if try await one.list().contains(where: { $0.role == "two" && !$0.hasKey }) {
                _ = try await one.share(with: try #require(rejoined.code))
            }
            try await again.open(passphrase: nil)
            let keys = (await one.membership?.dataKey, await again.membership?.dataKey)
            #expect(keys.0 == keys.1)
        } else {
            try await again.open(passphrase: nil)
        }
        #expect(await again.membership != nil)
        return life.isDead
    }

    @Test(arguments: [true, false]) func `goes on where it was`(isFirst: Bool) async throws {
        var count = 0
        while try await join(killedAfter: count, isFirst: isFirst) { count += 1 }
        #expect(count > 8)
    }

    @Test(arguments: [true, false]) func `goes on if the answer was lost`(isFirst: Bool) async throws {
        for name in ["accept", "identity", "give", "put"] {
            let owner = Owner()
            let one = isFirst ? nil : try await owner.first()
            let (memory, wire) = (MemoryVault(), Wire())
            let password = owner.hosts.invite("two").password
            let two = owner.vault("two", memory, fault: wire.fault)
            wire.set(.answerLost, for: name, count: 1)
            _ = try? await two.join(as: nil, otherwise: "two", invitation: password)
            let joined = try await two.join(as: nil, otherwise: "two", invitation: password)
            if let one, let code = joined.code { _ = try await one.share(with: code) }
            owner.rows.advance(by: .seconds(30))
            _ = try? await two.open(passphrase: nil)
            owner.rows.advance(by: .seconds(30))
            try await two.open(passphrase: nil)
            #expect(await two.membership != nil)
        }
    }
}

@Suite struct `Hosts that come and go` {
    private let owner = Owner()

    @Test func `a locked host invites, lists and removes nobody`() async throws {
        let (two, code) = (owner.vault("two"), HostCode(RandomToken.bytes(13)))
        owner.hosts.admit("two")
        let locked = HostFailure.vault(.locked(.notOpened))
        #expect(await refusal { try await two.invite(lasting: .seconds(60)) } == locked)
        #expect(await refusal { try await two.list() } == locked)
        #expect(await refusal { try await two.share(with: code) } == locked)
        #expect(await refusal { try await two.remove(host: "one") } == locked)
    }

    @Test func `a host is removed by another one, by name or role`() async throws {
        let one = try await owner.first()
        let invitation = try await one.invite(lasting: .seconds(60))
        _ = try await owner.second()
        #expect(await refusal { try await one.remove(host: "one") } == .ownHost)
        #expect(await refusal { try await one.remove(host: "nobody") } == .noSuchHost)
        #expect(try await one.remove(host: "two") == "two")
        #expect(try await one.remove(host: invitation.role) == invitation.role)
        #expect(try await one.list().map(\.role) == ["one"])
    }
}
