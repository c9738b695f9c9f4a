import LocalHTTP
import Records
import RingbackAPI
import RingbackBase
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SessionVault

@Suite(.timeLimit(.minutes(1))) struct `The vault on the socket` {
    private let session = "/v1/accounts/work/session"

    private func house() async throws -> APIHouse {
        let house = try await APIHouse(vault: LockingVault())
        try await house.signIn()
        return house
    }

    @Test func `locked, it serves nothing; opened, it goes on where it was`() async throws {
        let house = try await house()
        #expect(await house.ask("GET", session).status == 200)
        weak let encoding = house.broker.snapshot.current("work")?.entry.encoding
        #expect(encoding != nil)
        let locked = await house.ask("POST", "/v1/vault/lock")
        #expect(locked.status == 200)
        #expect(locked["locked"] == true && locked["reason"]?.string?.isEmpty == false)
        // Not in any corner of the hot path either.
        #expect(encoding == nil)
        for immediate in [true, false] {
            let answer = await house.ask("GET", session, immediate: immediate)
            #expect(answer.status == 423 && answer.code == "vault_locked")
            #expect(answer["recovery"] == "retry" && answer["detail"]?.string?.contains("locked") == true)
            #expect(answer["user_message"] == nil)
        }
        let status = await house.ask("GET", "/v1/status")
        #expect(status["vault"] == locked.json)
        let opened = await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#)
        #expect(opened.status == 200 && opened["locked"] == false && opened["reason"] == nil)
        #expect(await house.ask("GET", session)["access_token"] == "access-1")
        #expect(house.provider.tokenRequests == 1)
    }

    @Test func `a wrong passphrase is said so, then slowed down, and never repeated`() async throws {
        let house = try await house()
        await house.ask("POST", "/v1/vault/lock")
        var statuses: [Int] = []
        for number in 0..<7 {
            let answer = await house.ask("POST", "/v1/vault/unlock", "{\"passphrase\":\"canary-wrong-\(number)\"}")
            statuses.append(answer.status)
            #expect(!answer.text.contains("canary-wrong"))
            if answer.status == 429 {
                #expect(answer.code == "rate_limited")
                #expect(answer["retry_after"]?.integer.map { (1...60).contains($0) } == true)
                #expect(answer.response.fields["Retry-After"] != nil)
            } else {
                #expect(answer.code == "invalid_credentials")
            }
        }
        #expect(statuses == [401, 401, 401, 401, 401, 429, 429])
        house.clock.advance(by: 61)
        #expect(await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#).status == 200)
        await house.records.audit.flush()
        #expect(!house.folder.text.contains("canary"))
        #expect(house.folder.text.contains("unlock_refused"))
    }

    @Test func `a new key source is taken, or refused with the reason`() async throws {
        let house = try await house()
        let moved = await house.ask(
            "POST", "/v1/vault/rekey", #"{"key_source":"passphrase","passphrase":"canary-new"}"#)
        #expect(moved.status == 200 && moved["key_source"] == "passphrase")
        let refused = await house.ask("POST", "/v1/vault/rekey", #"{"key_source":"memory"}"#)
        #expect(refused.status == 409 && refused.code == "state_conflict")
        for body in [
            "{}", #"{"key_source":"passphrase"}"#, #"{"key_source":"none"}"#, #"{"key_source":1}"#,
            #"{"key_source":"auto","passphrase":""}"#,
        ] {
            let answer = await house.ask("POST", "/v1/vault/rekey", body)
            #expect(answer.status == 400 && answer.code == "validation_failed", "\(body)")
        }
        let odd = await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":["canary-odd"]}"#)
        #expect(odd.status == 400 && !odd.text.contains("canary"))
        await house.ask("POST", "/v1/vault/lock")
        #expect(await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-new"}"#).status == 200)
    }

    @Test func `tells that a passphrase is to be chosen, and of another source in the configuration`() async throws {
        let vault = LockingVault()
        let house = try await APIHouse(vault: vault)
        #expect(await house.ask("GET", "/v1/status")["vault"]?["needs_new_passphrase"] == nil)
        vault.becomeNew()
        #expect(await house.ask("POST", "/v1/vault/lock")["needs_new_passphrase"] == true)
        await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#)
        let moved = await house.ask("POST", "/v1/vault/rekey", #"{"key_source":"key-file"}"#)
        #expect(moved["key_source"] == "key-file" && moved["other_key_source"] == "passphrase")
        let back = await house.ask("POST", "/v1/vault/rekey", #"{"key_source":"passphrase","passphrase":"canary"}"#)
        #expect(back["other_key_source"] == nil)
    }

    @Test func `knows when a person asks for its key, and when the daemon does`() async throws {
        let vault = LockingVault()
        let house = try await APIHouse(vault: vault)
        await house.ask("POST", "/v1/vault/lock")
        await house.ask("POST", "/v1/vault/unlock", #"{"passphrase":"canary-passphrase"}"#)
        #expect(vault.openings == [false, true])
    }

    @Test func `one that is in memory alone cannot be locked`() async throws {
        let house = try await APIHouse.signedIn()
        let answer = await house.ask("POST", "/v1/vault/lock")
        #expect(answer.status == 409 && answer.code == "state_conflict")
        #expect(await house.ask("GET", session).status == 200)
    }
}

/// What callers are told while the database of a vault that hosts share is away, or another host is at a session.
@Suite struct `A shared vault that cannot be used now` {
    private let target = "/v1/accounts/work/session"

    private func expired() async throws -> (APIHouse, RecordingVault) {
        let vault = RecordingVault()
        let house = try await APIHouse(vault: vault)
        try await house.signIn()
        house.clock.advance(by: 3_600)
        return (house, vault)
    }

    @Test func `is 503 with a code of its own, and nobody is told to sign in`() async throws {
        let (house, vault) = try await expired()
        await vault.failAnnouncing(with: .unreachable(.databaseAway(.timedOut)))
        let first = await house.ask("GET", target)
        #expect(first.status == 503 && first.code == "vault_unreachable", "\(first.text)")
        #expect(first["recovery"] == "retry" && first["title"] == "The shared vault cannot be used now")
        #expect(
            first["detail"]?.string == "The vault's database cannot be reached: It did not answer in time. Nothing was "
                + "lost: try again.")
        let second = await house.ask("GET", target)
        #expect(second.code == "vault_unreachable", "\(second.text)")
        let seconds = try #require(second["retry_after"]?.integer)
        #expect(second.response.fields["Retry-After"] == String(seconds) && (1...30).contains(seconds))
        let refresh = await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        #expect(refresh.status == 503 && refresh.code == "vault_unreachable", "\(refresh.text)")
        let account = await house.ask("GET", "/v1/accounts/work")
        #expect(account["state"] == "authenticated" && account["error"]?["code"] == "vault_unreachable")
        await vault.failAnnouncing(with: nil)
        house.clock.advance(by: 31)
        #expect(await house.ask("GET", target).status == 200)
        #expect(await house.ask("GET", "/v1/accounts/work")["error"] == nil)
    }

    @Test func `says how long another host may be at the session`() async throws {
        let (house, vault) = try await expired()
        await vault.answer(.wait(.milliseconds(599_500)))
        let answer = await house.ask("GET", target)
        #expect(answer.status == 503 && answer.code == "vault_unreachable", "\(answer.text)")
        #expect(answer["retry_after"] == 600 && answer.response.fields["Retry-After"] == "600")
    }

    @Test func `is told on an exposed socket without what the machine is made of`() throws {
        let error = BrokerError.vaultUnreachable(.vault(.unreachable(.databaseRefused(.otherSchema(9)))))
        let problem = Problem(elsewhere: error, language: .english)
        #expect(problem.code == .vaultUnreachable)
        #expect(problem.detail == "The vault cannot be used at the moment. Nothing was lost: try again.")
    }
}

/// A vault in memory that a passphrase opens.
final class LockingVault: Vault {
    private struct State {
        var passphrase = Secret("canary-passphrase")
        var isLocked = false
        var source = KeySourceChoice.passphrase
        var isNew = false
        var openings: [Bool] = []
    }
    private let state = Mutex(State())
    private let memory = MemoryVault()

    private var isLocked: Bool { state.withLock { $0.isLocked } }

    func open(passphrase: Secret?) async throws(VaultError) {
        let isInteractive = KeyRequest.isInteractive
        let error: VaultError? = state.withLock { state in
            state.openings.append(isInteractive)
            guard state.isLocked else { return nil }
            guard let passphrase else { return .locked(.needsPassphrase) }
            guard passphrase == state.passphrase else { return .wrongPassphrase }
            state.isLocked = false
            return nil
        }
        if let error { throw error }
    }

    /// For each attempt to open it, whether a person asked for it.
    var openings: [Bool] { state.withLock { $0.openings } }

    /// As if nobody had chosen a passphrase yet.
    func becomeNew() { state.withLock { $0.isNew = true } }

    func close() async throws(VaultError) { state.withLock { $0.isLocked = true } }

    func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError) {
        guard choice != .memory else { throw .refused(.notIntoMemory) }
        _ = try opened()
        state.withLock { state in
            state.source = choice
            if let passphrase { state.passphrase = passphrase }
        }
    }

    private func opened() throws(VaultError) -> MemoryVault {
        if isLocked { throw .locked(.locked) }
        return memory
    }

    func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? { try await opened().load(slot) }
    func announce(_ slot: VaultSlot) async throws(VaultError) { try await opened().announce(slot) }
    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) { try await opened().store(text, in: slot) }
    func settle(_ slot: VaultSlot) async throws(VaultError) { try await opened().settle(slot) }
    func remove(_ slot: VaultSlot) async throws(VaultError) { try await opened().remove(slot) }
    func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry? { try await opened().retire(slot) }
    func replace(_ text: Secret, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        try await opened().replace(text, in: slot)
    }
    func keep(_ text: Secret, retiredFrom slot: VaultSlot) async throws(VaultError) -> RetiredEntry {
        try await opened().keep(text, retiredFrom: slot)
    }
    func retired() async throws(VaultError) -> [RetiredEntry] { try await opened().retired() }
    func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        try await opened().slots(of: kind, besides: known)
    }
    func discard(_ id: String) async throws(VaultError) { try await opened().discard(id) }

    var status: VaultStatus {
        state.withLock { state in
            var status = VaultStatus(
                kind: .sealedFile, isLocked: state.isLocked, reason: state.isLocked ? .locked : nil,
                keySource: state.source, protection: .passphrase)
            // As if that were in the configuration.
            status.otherKeySource = state.source == .passphrase ? nil : .passphrase
            status.needsNewPassphrase = state.isLocked && state.isNew
            return status
        }
    }
}
