import RingbackAPI
import RingbackBase
import SessionVault
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SharedVault

private final class FakeHosts: VaultHosts {
    private let state = Mutex((failure: HostFailure?.none, asked: [String]()))

    func fail(with failure: HostFailure?) { state.withLock { $0.failure = failure } }
    var asked: [String] { state.withLock { $0.asked } }

    private func note(_ what: String) throws(HostFailure) {
        let failure = state.withLock { state in
            state.asked.append(what)
            return state.failure
        }
        if let failure { throw failure }
    }

    func join(as name: String?, invitation: Secret?) async throws(HostFailure) -> JoinedHost {
        try note("join \(name ?? "-") \(invitation?.revealed() ?? "-")")
        let isNew = asked.count { $0.hasPrefix("join") } == 1
        return JoinedHost(
            name: name ?? "machine", owner: "ada", code: HostCode(Secret("7K2QX00000111112222Z")), isNew: isNew)
    }

    func invite(lasting: Duration) async throws(HostFailure) -> (invitation: Invitation, store: String) {
        try note("invite \(lasting)")
        return (
            Invitation(role: "ringback_1", password: Secret("canary-invitation")),
            "postgresql://ringback_1@db/ringback"
        )
    }

    func share(with code: HostCode) async throws(HostFailure) -> String {
        try note("share \(code.revealed())")
        return "desktop"
    }

    func list() async throws(HostFailure) -> [Host] {
        try note("list")
        return [
            Host(role: "r1", name: "laptop", isSelf: true, joined: 10, seen: 20, hasKey: true, publicKey: [1]),
            Host(role: "r2", name: nil, isSelf: false, joined: nil, seen: nil, hasKey: false, publicKey: nil),
        ]
    }

    func remove(host: String) async throws(HostFailure) -> String {
        try note("remove \(host)")
        return "desktop"
    }

    func isStale(_ slot: VaultSlot) async -> Bool { slot.account != "fresh" }
    func refreshStale() { state.withLock { $0.asked.append("refresh") } }
}

@Suite(.timeLimit(.minutes(1))) struct `Hosts on the socket` {
    private static let requests: [(String, String, String?)] = [
        ("POST", "/v1/vault/join", #"{"password":"canary-invitation","name":"laptop"}"#),
        ("GET", "/v1/vault/hosts", nil), ("POST", "/v1/vault/hosts", #"{"lasting":600}"#),
        ("DELETE", "/v1/vault/hosts/desktop", nil),
        ("POST", "/v1/vault/share", #"{"code":"7k2qx 00000-11111-2222z"}"#),
    ]

    @Test(arguments: requests.indices) func `a vault that is not shared has none`(index: Int) async throws {
        let (method, path, body) = Self.requests[index]
        let answer = await (try await APIHouse()).ask(method, path, body)
        #expect(answer.status == 409 && answer.code == "vault_not_shared", "\(answer.text)")
        #expect(answer["recovery"] == "fix_configuration")
    }

    @Test func `each request is told to the vault, and is in the audit log without its secrets`() async throws {
        let hosts = FakeHosts()
        let house = try await APIHouse(hosts: hosts)
        for (method, path, body) in Self.requests { await house.ask(method, path, body) }
        #expect(
            hosts.asked == [
                "join laptop canary-invitation", "list", "invite 600.0 seconds", "remove desktop", "refresh",
                "share 7K2QX-00000-11111-2222Z",
            ])
        let entries = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let log = entries.map(\.text).joined(separator: "\n")
        for event in ["vault_joined", "host_invited", "host_removed", "key_shared"] {
            #expect(log.contains("\"\(event)\""), "\(event)")
        }
        #expect(!log.contains("canary") && !log.contains("7K2QX"))
    }

    @Test func `a host that joins again, which changes nothing, is not in the audit log again`() async throws {
        let house = try await APIHouse(hosts: FakeHosts())
        for _ in 0..<3 { #expect(await house.ask("POST", "/v1/vault/join", "{}").status == 200) }
        let entries = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        #expect(entries.count { $0["event"] == "vault_joined" } == 1)
    }

    @Test func `an invitation has what the new host's configuration needs`() async throws {
        let house = try await APIHouse(hosts: FakeHosts())
        let answer = await house.ask("POST", "/v1/vault/hosts", "{}")
        #expect(answer.status == 201 && answer["role"] == "ringback_1" && answer["password"] == "canary-invitation")
        #expect(answer["store"] == "postgresql://ringback_1@db/ringback" && answer["expires_in"] == 3_600)
        for seconds in ["59", "604801", "\"1h\""] {
            let refused = await house.ask("POST", "/v1/vault/hosts", "{\"lasting\":\(seconds)}")
            #expect(refused.code == "validation_failed" && refused["field"] == "lasting")
        }
    }

    @Test func `a host that opens its vault gets no code, one that has no key does`() async throws {
        let house = try await APIHouse(hosts: FakeHosts())
        let opened = await house.ask("POST", "/v1/vault/join", "{}")
        #expect(opened.status == 200 && opened["host"] == "machine" && opened["owner"] == "ada")
        #expect(opened["code"] == nil)

        let vault = RecordingVault()
        await vault.failOpening(with: .locked(.noHostsKey, obstacle: .noHostsKey))
        let locked = try await APIHouse(vault: vault, hosts: FakeHosts())
        let waiting = await locked.ask("POST", "/v1/vault/join", "{}")
        #expect(waiting.status == 200 && waiting["code"] == "7K2QX-00000-11111-2222Z")
        let session = await locked.ask("GET", "/v1/accounts/work/session")
        #expect(session.status == 423 && session["cause"] == "no_hosts_key")
    }

    @Test(arguments: ["", "-x", ".x", "a/b", "a b", "é", String(repeating: "a", count: 65)])
    func `a name that is no word is refused`(name: String) async throws {
        let house = try await APIHouse(hosts: FakeHosts())
        let answer = await house.ask("POST", "/v1/vault/join", "{\"name\":\"\(name)\"}")
        #expect(answer.code == "validation_failed" && answer["field"] == "name")
    }

    @Test(arguments: ["{}", #"{"code":""}"#, #"{"code":"7K2QX"}"#, #"{"code":1}"#])
    func `a code that is none is refused, and not repeated`(body: String) async throws {
        let house = try await APIHouse(hosts: FakeHosts())
        let answer = await house.ask("POST", "/v1/vault/share", body)
        #expect(answer.code == "validation_failed" && answer["field"] == "code" && !answer.text.contains("7K2QX"))
    }

    private static let failures: [(HostFailure, Int, String)] = [
        (.passwordNeeded, 400, "validation_failed"), (.passwordRefused, 401, "invalid_credentials"),
        (.noSuchHost, 404, "not_found"), (.failedCode, 409, "state_conflict"),
        (.ownHost, 409, "state_conflict"),
        (.invitationUsed, 409, "state_conflict"), (.tooManyHosts, 409, "state_conflict"),
        (.nameTaken, 409, "state_conflict"), (.notJoined, 423, "vault_locked"),
        (.database(.noConnection), 503, "vault_unreachable"),
        (.cryptography, 409, "state_conflict"), (.vault(.locked(.locked)), 423, "vault_locked"),
    ]

    @Test(arguments: failures.indices) func `each failure has its code and a sentence`(index: Int) async throws {
        let (failure, status, code) = Self.failures[index]
        let hosts = FakeHosts()
        hosts.fail(with: failure)
        let isOfJoining = failure == .passwordNeeded || failure == .passwordRefused
        let (method, path) = isOfJoining ? ("POST", "/v1/vault/join") : ("DELETE", "/v1/vault/hosts/desktop")
        let answer = await (try await APIHouse(hosts: hosts)).ask(method, path)
        #expect(answer.status == status && answer.code == code, "\(answer.text)")
        #expect(answer["detail"]?.string?.hasSuffix(".") == true, "\(answer.text)")
    }

    @Test func `after a removal what is stale is refreshed once, and failures are told`() async throws {
        let house = try await APIHouse(hosts: FakeHosts())
        try await house.configure([
            try APIHouse.account("work"), try APIHouse.account("fresh"), try APIHouse.account("gone"),
        ])
        for name in ["work", "fresh", "gone"] { try await house.signIn(name) }
        try await house.configure([try APIHouse.account("work"), try APIHouse.account("fresh")])
        let listed = await house.ask("GET", "/v1/vault/hosts")
        #expect(listed["stale"] == ["work"] && listed["left"] == ["gone"], "\(listed.text)")
        let before = house.provider.tokenRequests
        let answer = await house.ask("DELETE", "/v1/vault/hosts/desktop")
        #expect(answer["host"] == "desktop" && answer["refreshed"] == ["work"] && answer["failed"] == [])
        #expect(answer["left"] == ["gone"], "\(answer.text)")
        #expect(house.provider.tokenRequests == before + 1)
        house.provider.goAway()
        let away = await house.ask("DELETE", "/v1/vault/hosts/desktop")
        #expect(away.status == 200 && away["refreshed"] == [] && away["failed"] == ["work"], "\(away.text)")
    }
}
