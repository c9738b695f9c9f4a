import Cryptography
import RingbackBase
import SessionVault
import Testing

@testable import SharedVault

@Suite struct `Joining the hosts that share a vault` {
    private let owner = Owner()

    @Test func `the first host makes the key, and is listed with it`() async throws {
        let one = owner.vault("one")
        #expect(await failure { try await one.open(passphrase: nil) } != nil)
        #expect(one.status.isLocked)
        let invitation = owner.hosts.invite("one")
        let joined = try await one.join(as: "laptop", otherwise: "machine", invitation: invitation.password)
        #expect(joined.name == "laptop" && joined.owner == "alice" && joined.isNew)
        try await one.open(passphrase: nil)
        #expect(!one.status.isLocked)
        // The invitation's password is good no more, and the record has the other one.
        #expect(owner.hosts["one"]?.password != invitation.password)
        #expect(try await one.list().map(\.hasKey) == [true])
        #expect(owner.hosts["one"]?.wrapped != nil)
    }

    @Test func `a further host opens when it is given the key for its code, and reads what is there`() async throws {
        let one = try await owner.first()
        try await one.store("first", as: .replacement)
        let (two, code) = try await owner.second()
        #expect(await failure { try await two.text() } != nil)
        #expect(two.status.isLocked && two.status.reason == .noHostsKey && two.status.obstacle == .noHostsKey)
        #expect(try await one.share(with: try #require(HostCode(Secret(code.revealed().lowercased())))) == "two")
        try await two.open(passphrase: nil)
        #expect(try await two.text() == "first")
        #expect(try await one.list().map(\.hasKey) == [true, true])
    }

    @Test func `the same call again changes nothing and shows the same code`() async throws {
        let one = try await owner.first()
        let (two, code) = try await owner.second()
        let before = owner.hosts["two"]
        let again = try await two.join(as: nil, otherwise: "other", invitation: nil)
        #expect(again.code == code && again.name == "two" && !again.isNew)
        #expect(try await one.join(as: nil, otherwise: "other", invitation: nil).isNew == false)
        #expect(owner.hosts["two"]?.password == before?.password && owner.hosts["two"]?.publicKey == before?.publicKey)
    }

    @Test func `a client registration of the first host is given to the database unasked`() async throws {
        let local = MemoryVault()
        let slot = VaultSlot(account: "work", binding: "https://id.example ", kind: .registration)
        await local.store(Secret("registration"), in: slot)
        let one = owner.vault("one", local)
        _ = try await one.join(as: nil, otherwise: "one", invitation: owner.hosts.invite("one").password)
        try await one.open(passphrase: nil)
        #expect(one.status.database?.unsent == 1)
        _ = await one.maintain()
        #expect(one.status.database?.unsent == 0)
        let (two, code) = try await owner.second()
        _ = try await one.share(with: code)
        try await two.open(passphrase: nil)
        #expect(try await two.text(slot) == "registration")
    }

    @Test func `sessions that the first host had count as unsent until they are loaded and sent`() async throws {
        let local = MemoryVault()
        let slots = ["work", "gone"].map { VaultSlot(account: $0, binding: "https://id.example ringback") }
        for slot in slots { await local.store(Secret(slot.account), in: slot) }
        let one = owner.vault("one", local)
        _ = try await one.join(as: nil, otherwise: "one", invitation: owner.hosts.invite("one").password)
        try await one.open(passphrase: nil)
        #expect(one.status.database?.unsent == 2)
        #expect(try await one.load(slots[0])?.text == Secret("work"))
        #expect(one.status.database?.unsent == 1)
        // Its account is not configured.
        #expect(try await one.slots(of: .session, besides: [slots[0]]) == [slots[1]])
        #expect(one.status.database?.unsent == 1)
        _ = await one.maintain()
        #expect(one.status.database?.unsent == 0)
        let (two, code) = try await owner.second()
        _ = try await one.share(with: code)
        try await two.open(passphrase: nil)
        #expect(try await two.text(slots[1]) == "gone")
    }

    @Test func `a hint makes the daemon try again at once`() async throws {
        let one = try await owner.first()
        let (two, code) = try await owner.second()
        var openings = two.mayOpen.makeAsyncIterator()
        _ = try await one.share(with: code)
        await two.look(at: [nil])
        await openings.next()
        try await two.open(passphrase: nil)
    }

    @Test func `a password is needed, and the right one`() async throws {
        let one = owner.vault("one")
        let invitation = owner.hosts.invite("one")
        #expect(await refusal { try await one.join(as: nil, otherwise: "one", invitation: nil) } == .passwordNeeded)
        let wrong = await refusal { try await one.join(as: nil, otherwise: "one", invitation: Secret("wrong")) }
        #expect(wrong == .passwordRefused)
        #expect(owner.hosts["one"]?.name == nil)
        _ = try await one.join(as: nil, otherwise: "one", invitation: invitation.password)
        try await one.open(passphrase: nil)
    }

    @Test func `a name that is taken can be chosen anew`() async throws {
        _ = try await owner.first()
        let two = owner.vault("two")
        let password = owner.hosts.invite("two").password
        let taken = await refusal { try await two.join(as: "one", otherwise: "x", invitation: password) }
        #expect(taken == .nameTaken)
        #expect(try await two.join(as: "two", otherwise: "x", invitation: password).name == "two")
    }

    @Test func `a role that was set up by hand works without joining`() async throws {
        owner.hosts.admit("one")
        let one = owner.vault("one")
        try await one.open(passphrase: nil)
        #expect(try await one.join(as: nil, otherwise: "x", invitation: nil).code == nil)
        try await one.store("first", as: .replacement)
        // Also if an attempt to join has left a record.
        owner.hosts.admit("two")
        owner.hosts.change("two") { $0.publicKey = [1] }
        let two = owner.vault("two")
        let used = await refusal { try await two.join(as: nil, otherwise: "two", invitation: nil) }
        #expect(used == .invitationUsed)
        #expect(await failure { try await two.open(passphrase: nil) } == .noKey)
    }

    @Test func `the first host finds the key that it made again`() async throws {
        let memory = MemoryVault()
        owner.hosts.admit("one")
        let one = owner.vault("one", memory)
        try await one.open(passphrase: nil)
        let made = try #require(await one.membership)
        #expect(made.dataKey.count == 32 && made.host == "one" && made.owner == Hex.text(MemoryHosts.owner))
        let again = owner.vault("one", memory)
        try await again.open(passphrase: nil)
        #expect(await again.membership == made)
    }

    @Test func `a key that was made during an outage is used once the database has its mark`() async throws {
        let wire = Wire()
        owner.hosts.admit("one")
        let one = owner.vault("one") { $0 == "put" ? wire.fault($0) : .none }
        wire.set(.answerLost, count: 1)
        #expect(await failure { try await one.open(passphrase: nil) } == .unreachable(.databaseAway(.timedOut)))
        owner.rows.advance(by: .seconds(1))
        try await one.open(passphrase: nil)
        #expect(await one.membership?.host == "one")
    }

    @Test func `what the database has lost is accepted anew with an invitation`() async throws {
        let host = owner.vault("two")
        let password = owner.hosts.invite("two").password
        _ = try await host.join(as: nil, otherwise: "two", invitation: password)
        // A replica that did not have it took over.
        owner.hosts.change("two") { $0 = MemoryHosts.Entry(password: password) }
        #expect(await failure { try await host.open(passphrase: nil) } != nil)
        _ = try await host.join(as: nil, otherwise: "two", invitation: password)
        try await host.open(passphrase: nil)
    }
}

@Suite struct `A key that is given to a host` {
    private let owner = Owner()

    @Test func `goes to no public key that the database shows in place of the host's`() async throws {
        let eve = try AgreementKey.generate().publicKey
        let forgeries: [@Sendable ([UInt8], HostCode) throws -> [UInt8]?] = [
            { published, _ in eve + Array(published.dropFirst(32)) }, { _, _ in eve }, { _, _ in [] },
            { published, _ in Array(published.dropLast()) },
            // The administrator has seen the code.
            { _, code in try code.published(eve, nonce: Secret(bytes: RandomToken.bytes(HostCode.nonceLength))) },
            // Another role's entry has it: the host of that role cannot use it.
            { _, _ in nil },
        ]
        for forge in forgeries {
            let owner = Owner()
            let local = MemoryVault()
            let one = owner.vault("one", local)
            _ = try await one.join(as: nil, otherwise: "one", invitation: owner.hosts.invite("one").password)
            try await one.open(passphrase: nil)
            let (_, code) = try await owner.second()
            let published = try #require(owner.hosts["two"]?.publicKey)
            let forged = try forge(published, code)
            owner.hosts.change("two") { $0.publicKey = forged }
            if forged == nil { owner.hosts.change("eve") { ($0.name, $0.publicKey) = ("eve", published) } }
            #expect(await refusal { try await one.share(with: code) } == .noSuchHost)
            // The code is dead, also after a start, and whatever the database shows then.
            owner.hosts.change("two") { $0.publicKey = published }
            #expect(await refusal { try await one.share(with: code) } == .failedCode)
            let restarted = owner.vault("one", local)
            try await restarted.open(passphrase: nil)
            #expect(await refusal { try await restarted.share(with: code) } == .failedCode)
            #expect(owner.hosts["two"]?.wrapped == nil && owner.hosts["eve"]?.wrapped == nil)
        }
    }

    @Test func `a code that was mistyped is dead, and the right one is not`() async throws {
        let one = try await owner.first()
        let (two, code) = try await owner.second()
        let mistyped = HostCode(RandomToken.bytes(13))
        #expect(await refusal { try await one.share(with: mistyped) } == .noSuchHost)
        #expect(owner.hosts["two"]?.wrapped == nil)
        #expect(await refusal { try await one.share(with: mistyped) } == .failedCode)
        #expect(try await one.share(with: code) == "two")
        try await two.open(passphrase: nil)
    }

    @Test func `is taken by no other host, and in no other form`() async throws {
        let one = try await owner.first()
        let (two, code) = try await owner.second()
        let (three, other) = try await owner.second("three")
        _ = try await one.share(with: code)
        let given = try #require(owner.hosts["two"]?.wrapped)
        owner.hosts.change("three") { $0.wrapped = given }
        #expect(await failure { try await three.open(passphrase: nil) } == .noKey)
        for index in [0, 31, 32, 50, given.count - 1] {
            var changed = given
            changed[index] ^= 1
            owner.hosts.change("two") { $0.wrapped = changed }
            #expect(await failure { try await two.open(passphrase: nil) } == .noKey)
        }
        owner.hosts.change("two") { $0.wrapped = given }
        try await two.open(passphrase: nil)
        _ = try await one.share(with: other)
        try await three.open(passphrase: nil)
    }

    @Test func `is not one that the database chooses`() async throws {
        _ = try await owner.first()
        let (two, _) = try await owner.second()
        let published = try #require(owner.hosts["two"]?.publicKey)
        let chosen = Membership(
            dataKey: Secret(bytes: [UInt8](repeating: 1, count: 32)), owner: Hex.text(MemoryHosts.owner), host: "two")
        let guess = HostCode([UInt8](repeating: 0, count: 13))
        owner.hosts.change("two") { entry in
            entry.wrapped = try? guess.seal(
                chosen.dataKey, for: Array(published.prefix(32)), of: "two", owner: chosen.owner)
        }
        #expect(owner.hosts["two"]?.wrapped != nil)
        // Not even if the database shows the mark of its key.
        let mark = try chosen.mark()
        owner.rows.database.replace(SharedRow(key: Membership.markRow, version: 1, epoch: 0, sealed: mark))
        #expect(await failure { try await two.open(passphrase: nil) } == .noKey)
        #expect(await two.membership == nil)
    }

    @Test func `is not another one than the hosts have`() async throws {
        let one = try await owner.first()
        let (two, code) = try await owner.second()
        _ = try await one.share(with: code)
        owner.rows.database.replace(SharedRow(key: Membership.markRow, version: 1, epoch: 0, sealed: [1]))
        #expect(await failure { try await two.open(passphrase: nil) } == .noKey)
    }
}
