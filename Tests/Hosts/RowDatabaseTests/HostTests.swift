import PostgresClient
import RingbackBase
import SessionVault
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `Hosts of an owner` {
    private let limit = Duration.seconds(20)

    @Test func `an invitation works once, with a password that is replaced`() async throws {
        let house = try await VaultHouse("vault")
        let owner = Fresh.owner()
        let invitation = try await house.administration.admit(owner: owner, lasting: .seconds(600))
        let first = try house.connect(invitation.role, invitation.password)
        await #expect(throws: HostFailure.notJoined) { try await first.identity() }
        await #expect(throws: DatabaseReason.notPermitted) { try await first.read([Fresh.key()]) }
        await #expect(throws: HostFailure.notJoined) { try await first.invite(lasting: .seconds(600)) }
        // Somebody else has the invitation too, and is connected.
        let other = try house.connect(invitation.role, invitation.password)
        await #expect(throws: HostFailure.notJoined) { try await other.identity() }

        let password = Invitation.newPassword()
        try await first.accept(as: "laptop", password: password, publicKey: [1])
        // The same call again, with the password that holds now: the other connections of the first have ended.
        let repeated = try house.connect(invitation.role, password)
        try await repeated.accept(as: "laptop", password: password, publicKey: [1])
        await #expect(throws: (any Error).self) {
            try await other.accept(as: "evil", password: password, publicKey: [2])
        }
        let again = try house.connect(invitation.role, invitation.password)
        await #expect(throws: DatabaseReason.authentication) { try await again.read([Fresh.key()]) }
        let joined = try house.connect(invitation.role, password)
        let identity = try await joined.identity()
        #expect(identity.ownerName == owner && identity.name == "laptop")
        #expect(identity.owner.count == 16 && identity.wrappedKey == nil)
    }

    @Test func `the password of a role is in no log and no table as it is`() async throws {
        let house = try await VaultHouse("vault")
        let owner = Fresh.owner()
        let host = try await house.host("laptop", of: owner)
        let client = try house.client("postgres")
        let stored = try await client.run(
            "SELECT rolpassword FROM pg_authid WHERE rolname = $1", [.text(host.role)], within: limit)
        #expect(try stored[0].text(0).hasPrefix("SCRAM-SHA-256$"))
        await #expect(throws: (any Error).self) {
            _ = try await house.client("postgres").run(
                "SELECT ringback.admit(1, $1, $2, 60)", [.text(owner), .text("plain")], within: limit)
        }
        let log = Shell.output("cat '\(house.server.directory)/server.log'") ?? ""
        #expect(!log.contains(host.password.revealed()))
    }

    @Test func `a second host joins and is given the key`() async throws {
        let house = try await VaultHouse("vault")
        let owner = Fresh.owner()
        let laptop = try await house.host("laptop", of: owner)
        let invitation = try await laptop.rows.invite(lasting: .seconds(600))
        #expect(try await laptop.rows.hosts().map(\.name) == ["laptop", nil])
        let login = try await house.join("login", invitation)
        let hosts = try await laptop.rows.hosts()
        #expect(hosts.map(\.name) == ["laptop", "login"] && hosts.map(\.isSelf) == [true, false])
        #expect(hosts[1].publicKey == Array("login".utf8) && !hosts[1].hasKey && hosts[1].joined != nil)
        #expect(try await laptop.rows.give(key: [4, 5], to: login.role))
        #expect(try await !laptop.rows.give(key: [4, 5], to: "nobody"))
        let identity = try await login.rows.identity()
        #expect(identity.wrappedKey == [4, 5])
        #expect(try await identity.owner == laptop.rows.identity().owner)
        // Both see the same rows.
        let key = Fresh.key()
        _ = try await laptop.rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        #expect(try await login.rows.read([key])[key]?.sealed == [1])
    }

    @Test func `a host that is removed is out at once, and its role is gone`() async throws {
        let house = try await VaultHouse("vault")
        let owner = Fresh.owner()
        let laptop = try await house.host("laptop", of: owner)
        let lost = try await house.join("lost", try await laptop.rows.invite(lasting: .seconds(600)))
        // What it makes does not keep it there.
        let client = try house.client(lost.role, lost.password)
        try await client.run(script: "CREATE TEMP TABLE t (a int); SELECT lo_create(0)", within: limit)
        #expect(try await lost.rows.hosts().count == 2)
        #expect(try await laptop.rows.remove(host: lost.role))
        #expect(try await !laptop.rows.remove(host: lost.role))
        await #expect(throws: (any Error).self) { try await lost.rows.read([Fresh.key()]) }
        await #expect(throws: (any Error).self) { try await client.run("SELECT 1", within: limit) }
        let roles = try await house.client("postgres").run(
            "SELECT rolname FROM pg_roles WHERE rolname = $1", [.text(lost.role)], within: limit)
        #expect(roles.count == 0)
        #expect(try await laptop.rows.hosts().map(\.name) == ["laptop"])
    }

    @Test func `a lost host that holds locks and has made many objects is removed all the same`() async throws {
        let house = try await VaultHouse("vault")
        let laptop = try await house.host("laptop", of: Fresh.owner())
        let lost = try await house.join("lost", try await laptop.rows.invite(lasting: .seconds(600)))
        let client = try house.client(lost.role, lost.password)
        // More than the server has room for locks.
        try await client.run(script: "SELECT count(lo_create(0)) FROM generate_series(1, 100000)", within: limit)
        let verifier = try PostgresClient.verifier(of: Secret("password"))
        try await client.run(
            script: "BEGIN; ALTER ROLE \(lost.role) SET statement_timeout = 0; "
                + "SELECT ringback.invite(1, '\(verifier)', 600); "
                + "SELECT ringback.accept(1, '\(verifier)', 'lost', 'lost')", within: limit)
        #expect(try await laptop.rows.remove(host: lost.role))
        await #expect(throws: (any Error).self) { try await client.run("SELECT 1", within: limit) }
        await #expect(throws: (any Error).self) {
            try await house.client(lost.role, lost.password).run("SELECT 1", within: limit)
        }
        #expect(try await laptop.rows.hosts().map(\.name) == ["laptop"])
        // The role that is left over is in nobody's way.
        let another = try await laptop.rows.invite(lasting: .seconds(600))
        #expect(try await laptop.rows.remove(host: another.role))
    }

    @Test func `two hosts that lock each other's lines are removed all the same`() async throws {
        let house = try await VaultHouse("vault")
        let laptop = try await house.host("laptop", of: Fresh.owner())
        var lost: [Member] = []
        for name in ["one", "two"] {
            lost.append(try await house.join(name, try await laptop.rows.invite(lasting: .seconds(600))))
        }
        let clients = try lost.map { try house.client($0.role, $0.password) }
        for (client, other) in zip(clients, lost.reversed()) {
            try await client.run(script: "BEGIN; SELECT ringback.give_key(1, '\(other.role)', '\\x00')", within: limit)
        }
        for host in lost { #expect(try await laptop.rows.remove(host: host.role)) }
        for client in clients {
            await #expect(throws: (any Error).self) { try await client.run("SELECT 1", within: limit) }
        }
        #expect(try await laptop.rows.hosts().map(\.name) == ["laptop"])
    }

    @Test func `hosts of another owner cannot be listed, given a key or removed`() async throws {
        let house = try await VaultHouse("vault")
        let ada = try await house.host("laptop", of: Fresh.owner())
        let eve = try await house.host("evil", of: Fresh.owner())
        #expect(try await eve.rows.hosts().map(\.role) == [eve.role])
        #expect(try await !eve.rows.give(key: [1], to: ada.role))
        #expect(try await !eve.rows.remove(host: ada.role))
        #expect(try await ada.rows.identity().wrappedKey == nil)
    }

    @Test func `an owner has a bounded number of hosts`() async throws {
        let house = try await VaultHouse("vault")
        let owner = Fresh.owner()
        let laptop = try await house.host("laptop", of: owner)
        let client = try house.client("postgres")
        _ = try await client.run(
            "UPDATE ringback.owners SET most_hosts = 2 WHERE name = $1", [.text(owner)], within: limit)
        _ = try await laptop.rows.invite(lasting: .seconds(600))
        await #expect(throws: HostFailure.tooManyHosts) { try await laptop.rows.invite(lasting: .seconds(600)) }
        // An invitation that nobody took makes room when it is over.
        _ = try await client.run(
            "UPDATE ringback.hosts SET invited_until = now() - interval '1 second' WHERE joined_at IS NULL AND owner = "
                + "(SELECT owner FROM ringback.owners WHERE name = $1)", [.text(owner)], within: limit)
        _ = try await laptop.rows.invite(lasting: .seconds(600))
        #expect(try await laptop.rows.hosts().count == 2)
    }
}
