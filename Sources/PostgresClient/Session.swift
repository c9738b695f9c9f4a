// One connection. Every wait has a deadline, after which the connection is not used again: what the server may still
// send for a statement that nobody waits for would be taken for the next one's result.

internal import CPostgres
internal import Glibc
internal import Secrets

/// One connection to the server, used by one thread. Its functions block until their deadline at most, except that
/// making it resolves a name, for as long as the system's resolver takes.
@safe final class Session {
    private let connection: OpaquePointer
    /// False after a failure that ends the connection.
    private(set) var isUsable = true

    /// Connects. Throws why not.
    init(_ settings: Settings, password: Secret?, until deadline: ContinuousClock.Instant) throws(PostgresFailure) {
        guard cpostgres_load() else { throw .noLibrary }
        let begun = unsafe settings.withArrays(password: password) { names, values in
            unsafe cpostgres_start(names, values)
        }
        guard let begun = unsafe begun else { throw .noConnection }
        unsafe connection = begun
        var stage = unsafe cpostgres_stage(connection)
        guard stage != cpostgres_stage_failed else { throw failureToConnect(at: cpostgres_stage_started) }
        // libpq's documentation: the first wait is for the socket to become writable.
        var events = POLLOUT
        while true {
            guard try awaits(events, until: deadline) else { throw .timedOut }
            let step = unsafe cpostgres_poll(connection)
            if step == cpostgres_poll_ok { return }
            guard step != cpostgres_poll_failed else { throw failureToConnect(at: stage) }
            events = step == cpostgres_poll_reading ? POLLIN : POLLOUT
            stage = unsafe cpostgres_stage(connection)
        }
    }

    deinit { unsafe cpostgres_finish(connection) }

    /// The descriptor to poll for while nothing runs.
    var descriptor: Int32 { unsafe cpostgres_socket(connection) }

    /// The server's process as it was told when the connection was made.
    var backend: Int64 { Int64(unsafe cpostgres_backend(connection)) }

    var usesTLS: Bool { unsafe cpostgres_uses_tls(connection) }

    /// Runs one statement and waits for its rows.
    func run(
        _ statement: String, _ values: [PostgresValue], until deadline: ContinuousClock.Instant
    ) throws(PostgresFailure) -> PostgresRows {
        let encoded = values.map(\.encoded)
        let types = values.map(\.type)
        let lengths = encoded.map { Int32($0?.count ?? 0) }
        // An empty value needs an address that is not NULL.
        let joined = encoded.reduce(into: [UInt8]()) { $0 += ($1 ?? []) + [0] }
        let isSent = unsafe joined.withUnsafeBytes { bytes in
            var position = 0
            let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            let pointers = unsafe encoded.map { value -> UnsafePointer<CChar>? in
                defer { position += (value?.count ?? 0) + 1 }
                return unsafe value == nil ? nil : base.map { unsafe $0 + position }
            }
            return unsafe cpostgres_send(connection, statement, Int32(values.count), types, pointers, lengths)
        }
        guard isSent else { throw end(.closed) }
        return try finish(until: deadline)
    }

    /// Runs several statements without parameters as one transaction.
    func run(script: String, until deadline: ContinuousClock.Instant) throws(PostgresFailure) {
        guard unsafe cpostgres_send_script(connection, script) else { throw end(.closed) }
        _ = try finish(until: deadline)
    }

    /// The payloads of the notifications that have arrived. Throws `closed` if the connection has ended.
    func notifications() throws(PostgresFailure) -> [String] {
        guard unsafe cpostgres_consume(connection) else { throw end(.closed) }
        var payloads: [String] = []
        var payload = [CChar](repeating: 0, count: 256)
        while unsafe cpostgres_notification(connection, &payload, payload.count) {
            payloads.append(String(decoding: payload.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
        return payloads
    }

    /// The verifier that the server stores for a password.
    func verifier(of password: Secret, user: String) throws(PostgresFailure) -> String {
        var text = [CChar](repeating: 0, count: 512)
        guard unsafe cpostgres_verifier(connection, password.revealed(), user, &text, text.count) else {
            throw .malformed
        }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    // MARK: Waiting

    private func finish(until deadline: ContinuousClock.Instant) throws(PostgresFailure) -> PostgresRows {
        while true {
            let left = unsafe cpostgres_flush(connection)
            guard left >= 0 else { throw end(lastFailure) }
            guard left > 0 else { break }
            guard try awaits(POLLOUT | POLLIN, until: deadline) else { throw end(.timedOut) }
            guard unsafe cpostgres_consume(connection) else { throw end(lastFailure) }
        }
        var rows: [[[UInt8]?]] = []
        var failure: PostgresFailure?
        while true {
            while unsafe cpostgres_is_busy(connection) {
                guard try awaits(POLLIN, until: deadline) else { throw end(.timedOut) }
                guard unsafe cpostgres_consume(connection) else { throw end(failure ?? lastFailure) }
            }
            guard let result = unsafe cpostgres_result_next(connection) else { break }
            defer { unsafe cpostgres_result_free(result) }
            if unsafe cpostgres_result_is_good(result) {
                unsafe append(result, to: &rows)
            } else if failure == nil {
                failure = unsafe Self.failure(of: result)
            }
        }
        if let failure {
            if failure.endsConnection { throw end(failure) }
            throw failure
        }
        return PostgresRows(rows)
    }

    private func append(_ result: OpaquePointer, to rows: inout [[[UInt8]?]]) {
        let columns = unsafe cpostgres_result_columns(result)
        for row in 0..<(unsafe cpostgres_result_rows(result)) {
            rows.append(
                (0..<columns).map { column in
                    var count: Int32 = 0
                    guard let value = unsafe cpostgres_result_value(result, row, column, &count) else { return nil }
                    return unsafe [UInt8](UnsafeBufferPointer(start: value, count: Int(count)))
                })
        }
    }

    /// Waits for an event of the socket; false when the deadline has passed.
    private func awaits(_ events: Int32, until deadline: ContinuousClock.Instant) throws(PostgresFailure) -> Bool {
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return false }
            var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            guard entry.fd >= 0 else { throw end(.closed) }
            if unsafe poll(&entry, 1, Wake.milliseconds(left)) > 0 { return true }
        }
    }

    private func end(_ failure: PostgresFailure) -> PostgresFailure {
        isUsable = false
        return failure
    }

    // MARK: Failures

    private static func failure(of result: OpaquePointer) -> PostgresFailure {
        // libpq makes a result without a state when the connection ends.
        guard let state = unsafe cpostgres_result_state(result) else { return .closed }
        let detail = unsafe cpostgres_result_detail(result).map { unsafe String(cString: $0) }
        return .of(state: unsafe String(cString: state), detail: detail)
    }

    private var lastFailure: PostgresFailure {
        ServerState.code(in: unsafe String(cString: cpostgres_error(connection)))
            .map { .of(state: $0, detail: nil) } ?? .closed
    }

    /// Why no connection was made, by how far it came. The library has no other sign; its texts are for people.
    private func failureToConnect(at stage: Int32) -> PostgresFailure {
        isUsable = false
        if let code = ServerState.code(in: unsafe String(cString: cpostgres_error(connection))) {
            return switch PostgresFailure.of(state: code, detail: nil) {
            // The state that pgbouncer has for a password that is wrong.
            case .closed where code == "08P01" && stage == cpostgres_stage_authenticating: .authentication
            case .closed: .noConnection
            case let failure: failure
            }
        }
        if unsafe cpostgres_lacks_password(connection) { return .noPassword }
        return switch stage {
        case cpostgres_stage_started: .noConnection
        case cpostgres_stage_tls: .tls
        case cpostgres_stage_checking, cpostgres_stage_checking_target, cpostgres_stage_checking_standby: .readOnly
        default: .closed
        }
    }
}

/// The SQLSTATE in the text of a server's error: the severity, which may be in any language, a colon, and five letters or
/// digits before another colon.
enum ServerState {
    /// The last one; nil if there is none.
    static func code(in text: String) -> String? {
        let bytes = Array(text.utf8)
        var index = bytes.count - 6
        while index >= 2 {
            let code = bytes[index..<(index + 5)]
            if bytes[index + 5] == UInt8(ascii: ":"), bytes[index - 1] == 0x20, bytes[index - 2] == 0x20,
                code.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
            {
                return String(decoding: code, as: UTF8.self)
            }
            index -= 1
        }
        return nil
    }
}
