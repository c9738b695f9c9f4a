import RingbackBase
import Testing

@testable import PostgresClient

@Suite struct `The URL of a database` {
    @Test func `a name is verified, by the system's authorities`() throws {
        let url = try PostgresURL(parsing: "postgresql://ada@db.example.org/vault")
        #expect(url.hosts == [.init(place: .name("db.example.org"), port: 5_432)])
        #expect(url.user == "ada" && url.database == "vault")
        #expect(url.sslMode == "verify-full" && url.rootCertificates == nil)
    }

    @Test func `everything that may be there`() throws {
        let url = try PostgresURL(
            parsing: "postgres://a%40b@one:1,[2001:db8::1]:2,10.0.0.1/x%2Fy?sslrootcert=/ca.pem&passfile=%2Fp%20w"
                + "&channel_binding=require&sslmode=verify-full")
        #expect(
            url.hosts == [
                .init(place: .name("one"), port: 1), .init(place: .address("2001:db8::1"), port: 2),
                .init(place: .address("10.0.0.1"), port: 5_432),
            ])
        #expect(url.user == "a@b" && url.database == "x/y")
        #expect(url.rootCertificates == "/ca.pem" && url.passwordFile == "/p w" && url.channelBinding == "require")
    }

    @Test(arguments: ["%2Frun%2Fpostgresql:5433/db", "/db?host=/run/postgresql&port=5433"])
    func `a Unix socket`(rest: String) throws {
        let url = try PostgresURL(parsing: "postgresql://ada@\(rest)")
        #expect(url.hosts == [.init(place: .socket("/run/postgresql"), port: 5_433)])
        #expect(url.sslMode == "prefer")
    }

    @Test(arguments: ["127.0.0.1", "[::1]", "localhost", "%2Ftmp", "localhost,127.0.0.1:2"])
    func `on this machine TLS can be left out`(host: String) throws {
        #expect(try PostgresURL(parsing: "postgresql://ada@\(host)/db?sslmode=disable").sslMode == "disable")
    }

    @Test(arguments: ["disable", "allow", "prefer", "require", "verify-ca"])
    func `elsewhere it cannot`(mode: String) {
        for host in ["db.example.org", "10.0.0.1", "localhost.example.org", "[::2]", "localhost,db"] {
            #expect(throws: PostgresURLError.weakTLS) {
                try PostgresURL(parsing: "postgresql://ada@\(host)/db?sslmode=\(mode)")
            }
        }
    }

    @Test(
        arguments: [
            ("mysql://a@h/", .scheme), ("postgresql:/a@h/", .scheme), ("postgresql://h/db", .noUser),
            ("postgresql://@h/db", .noUser), ("postgresql://a:b@h/db", .password), ("postgresql://a:@h/db", .password),
            ("postgresql://a@h/db?password=x", .password), ("postgresql://a@h/db?p%61ssword=x", .password),
            ("postgresql://a@/db", .badHost), ("postgresql://a@h,/db", .badHost), ("postgresql://a@127.1/db", .badHost),
            ("postgresql://a@0x7f000001/db", .badHost), ("postgresql://a@1%2C2/db", .badHost),
            ("postgresql://a@[::1/db", .badHost), ("postgresql://a@[h]/db", .badHost),
            ("postgresql://a@h_%20/db", .badHost),
            ("postgresql://a@h:0/db", .badPort), ("postgresql://a@h:65536/db", .badPort),
            ("postgresql://a@h:/db", .badPort),
            ("postgresql://a@h:+1/db", .badPort), ("postgresql://a@h/db?options=-c", .unknownParameter("options")),
            ("postgresql://a@h/db?service=x", .unknownParameter("service")),
            ("postgresql://a@h/db?sslmode", .badValue("sslmode")),
            ("postgresql://a@h/db?sslmode=x", .badValue("sslmode")), ("postgresql://a@h/db?port=1", .badValue("port")),
            ("postgresql://a@h/db?sslrootcert=ca", .badValue("sslrootcert")),
            ("postgresql://a@h/db?host=/x", .repeatedParameter("host")),
            ("postgresql://a@h/db?passfile=/a&passfile=/b", .repeatedParameter("passfile")),
            ("postgresql://a@h/d%00b", .malformed), ("postgresql://a@h/d%zzb", .malformed),
            ("postgresql://a@h/%ff", .malformed),
            ("postgresql://a@h/d b", .malformed), ("postgresql://a@h/db#x", .malformed),
            ("postgresql://a@h/d\u{e4}", .malformed),
            ("postgresql://a@\(Array(repeating: "h", count: 9).joined(separator: ","))/db", .badHost),
        ] as [(String, PostgresURLError)])
    func `what is not understood is refused`(text: String, error: PostgresURLError) {
        #expect(throws: error) { try PostgresURL(parsing: text) }
    }
}

@Suite struct `Values in binary form` {
    @Test func `parameters`() {
        #expect(PostgresValue.integer(-2).encoded == [255, 255, 255, 255, 255, 255, 255, 254])
        #expect(PostgresValue.flag(true).encoded == [1])
        #expect(PostgresValue.text("\u{e4}").encoded == [0xC3, 0xA4])
        #expect(PostgresValue.null.encoded == nil)
        #expect(PostgresValue.bytesList([]).encoded == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17])
        #expect(
            PostgresValue.bytesList([[7], []]).encoded
                == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 0, 0, 0, 0])
    }

    @Test func `results are of the form that is asked for, or malformed`() throws {
        let row = PostgresRow(values: [[255, 254], [0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 0], nil, [0xFF], [1]])
        #expect(try row.integer(0) == -2)
        #expect(try row.integer(1) == 1)
        #expect(try row.integer(2) == 1 << 56)
        #expect(try row.isNull(3) && !row.isNull(4))
        #expect(try row.flag(5))
        #expect(throws: DatabaseReason.malformed) { try row.integer(3) }
        #expect(throws: DatabaseReason.malformed) { try row.integer(4) }
        #expect(throws: DatabaseReason.malformed) { try row.text(4) }
        #expect(throws: DatabaseReason.malformed) { try row.flag(4) }
        #expect(throws: DatabaseReason.malformed) { try row.bytes(6) }
        #expect(throws: DatabaseReason.malformed) { try row.isNull(-1) }
    }

    @Test func `the state in the text of a server's error`() {
        #expect(
            ServerState.code(in: "connection to server failed: FATAL:  28P01: password authentication\n") == "28P01")
        #expect(ServerState.code(in: "a: FATAL:  57P03: starting\nb: FATAL:  53300: too many\n") == "53300")
        #expect(ServerState.code(in: "connection to server at \"h\", port 5432 failed: Connection refused") == nil)
        #expect(ServerState.code(in: "") == nil)
        #expect(DatabaseReason.of(state: "RB001", detail: "7") == .otherSchema(7))
        #expect(DatabaseReason.of(state: "23505", detail: "7") == .refused(state: "23505"))
    }
}

@Suite struct `The URL of a database for another role` {
    @Test(arguments: [
        ("postgresql://postgres@db.example.org/vault", "postgresql://r_1@db.example.org/vault"),
        ("postgres://a@one:1,[2001:db8::1]:2,10.0.0.1/x%2Fy", "postgresql://r_1@one:1,[2001:db8::1]:2,10.0.0.1/x%2Fy"),
        ("postgresql://a@%2Frun%2Fpostgresql/db", "postgresql://r_1@%2Frun%2Fpostgresql/db"),
        ("postgresql://a@/db?host=/run/p&port=5433", "postgresql://r_1@%2Frun%2Fp:5433/db"),
        ("postgresql://a@localhost/db?sslmode=disable", "postgresql://r_1@localhost/db?sslmode=disable"),
        (
            "postgresql://a@db/db?sslrootcert=/c%20a.pem&sslmode=verify-full&channel_binding=require&passfile=/p",
            "postgresql://r_1@db/db?sslrootcert=%2Fc%20a.pem&channel_binding=require"
        ),
    ])
    func `is the same but for the role and its passwords`(text: String, wanted: String) throws {
        let url = try PostgresURL(parsing: text)
        #expect(url.text(for: "r_1") == wanted)
        let read = try PostgresURL(parsing: url.text(for: "r@ /1"))
        #expect(read.user == "r@ /1" && read.hosts == url.hosts && read.database == url.database)
        #expect(read.sslMode == url.sslMode && read.rootCertificates == url.rootCertificates)
        #expect(read.passwordFile == nil && read.channelBinding == url.channelBinding)
    }
}
