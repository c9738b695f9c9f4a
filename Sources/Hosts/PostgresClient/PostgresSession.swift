internal import CPostgres
internal import Glibc
internal import RingbackBase

/// One connection to the server, used by one thread. Its functions block until their deadline at most, but for
/// resolving the name. After a deadline it is not used: what the server still sends would be taken for the next result.
@safe final class Session {
    /// The most bytes that a statement's result may have.
    static let mostBytes = 16 << 20
    /// The same while the connection is made, with certificates.
    private static let mostBytesOfStart = 256 << 10
    /// The most that a result may take here, with what each row and value takes beside its bytes.
    private static let mostMemory = 2 * mostBytes
    private let connection: OpaquePointer
    private var wire: Wire?
    private var allowance = Session.mostBytesOfStart
    /// False after a failure that ends the connection.
    private(set) var isUsable = true

    init(_ settings: Settings, password: Secret?, until deadline: ContinuousClock.Instant) throws(DatabaseReason) {
        guard cpostgres_load() else { throw .noLibrary }
        let begun = unsafe settings.withArrays(password: password) { names, values in
            unsafe cpostgres_start(names, values)
        }
        guard let begun = unsafe begun else { throw .noConnection }
        unsafe connection = begun
        var start = Start(settings, stage: unsafe cpostgres_stage(connection))
        guard start.stage != cpostgres_stage_failed else { throw failureToConnect(at: cpostgres_stage_started) }
        // libpq's documentation: the first wait is for the socket to become writable.
        var events = POLLOUT
        while true {
            // libpq may have begun again with another address, or without TLS.
            if unsafe wire?.isBehind(cpostgres_socket(connection)) != true { try takeSocket(&start) }
            let isReady = try awaits(events, until: deadline) { bytes, server throws(DatabaseReason) in
                try start.check(bytes, from: server)
            }
            guard isReady else { throw .timedOut }
            if events == POLLIN, try !mayRead(&start) { continue }
            let step = unsafe cpostgres_poll(connection)
            if step == cpostgres_poll_ok { return }
            guard step != cpostgres_poll_failed else { throw failureToConnect(at: start.stage) }
            events = step == cpostgres_poll_reading ? POLLIN : POLLOUT
            start.stage = unsafe cpostgres_stage(connection)
            start.checked = Int(unsafe cpostgres_pending(connection))
        }
    }

    deinit {
        unsafe cpostgres_finish(connection)
        // What libpq has sent last, so that the server knows that the end is meant.
        try? wire?.move { _ in }
    }

    var descriptor: Int32 {
        if let wire { return wire.server }
        return unsafe cpostgres_socket(connection)
    }

    /// The server's process as it was told when the connection was made.
    var backend: Int64 { Int64(unsafe cpostgres_backend(connection)) }
    var usesTLS: Bool { unsafe cpostgres_uses_tls(connection) }

    func run(
        _ statement: String, _ values: [PostgresValue], until deadline: ContinuousClock.Instant
    ) throws(DatabaseReason) -> PostgresRows {
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
        return PostgresRows(try finish(until: deadline))
    }

    func run(script: String, until deadline: ContinuousClock.Instant) throws(DatabaseReason) {
        guard unsafe cpostgres_send_script(connection, script) else { throw end(.closed) }
        _ = try finish(until: deadline)
    }

    /// The payloads of the notifications that have arrived. Throws `closed` if the connection has ended.
    func notifications() throws(DatabaseReason) -> [String] {
        var payloads: [String] = []
        var payload = [CChar](repeating: 0, count: 256)
        repeat {
            try move()
            guard unsafe cpostgres_consume(connection) else { throw end(.closed) }
            while unsafe cpostgres_notification(connection, &payload, payload.count) {
                payloads.append(
                    String(decoding: payload.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
            }
        } while isReadable || wire?.hasIncoming == true
        return payloads
    }

    static func verifier(of password: Secret) throws(DatabaseReason) -> String {
        guard cpostgres_load() else { throw .noLibrary }
        var text = [CChar](repeating: 0, count: 512)
        guard unsafe cpostgres_verifier(password.revealed(), &text, text.count) else { throw .malformed }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private struct Start {
        let settings: Settings
        var messages: StartCheck
        var isKnown: Bool
        /// Whether the server speaks TLS; nil before it has said so.
        var hasTLS: Bool?
        var stage: Int32
        /// How many bytes of the record that libpq is reading were checked.
        var checked = 0

        init(_ settings: Settings, stage: Int32) {
            self.settings = settings
            self.stage = stage
            messages = StartCheck(isVerified: settings.isVerified)
            isKnown = settings.isVerified
        }

        mutating func check(_ bytes: [UInt8], from server: Int32) throws(DatabaseReason) {
            guard let first = bytes.first else { return }
            if !isKnown, let uid = ServerOwner.uid(of: server) {
                guard ServerOwner.isTrusted(uid, configured: settings.serverUID) else { throw .foreignServer(uid: uid) }
                isKnown = true
            }
            var rest = bytes[...]
            if hasTLS == nil {
                // A server speaks when it is asked.
                guard stage == cpostgres_stage_tls || stage == cpostgres_stage_authenticating else { throw .malformed }
                hasTLS = stage == cpostgres_stage_tls && first == UInt8(ascii: "S")
                if stage == cpostgres_stage_tls, first == UInt8(ascii: "N") { rest.removeFirst() }
                // What came in the same packet was not sent over TLS.
                guard hasTLS == false || bytes.count == 1 else { throw .malformed }
            }
            guard hasTLS == false else {
                guard isKnown else { throw .foreignServer(uid: nil) }
                return
            }
            if let refusal = messages.refusal(of: rest, isKnown: isKnown) { throw refusal }
        }
    }

    private func takeSocket(_ start: inout Start) throws(DatabaseReason) {
        let socket = unsafe cpostgres_socket(connection)
        wire = nil
        start = Start(start.settings, stage: start.stage)
        guard ServerOwner.isConnected(socket) else {
            // libpq has read nothing from it, and will see that it cannot.
            guard [cpostgres_stage_started, cpostgres_stage_needed].contains(start.stage) else { throw end(.closed) }
            return
        }
        guard let taken = Wire(replacing: socket) else { throw end(.noConnection) }
        wire = taken
    }

    /// Checks what libpq will read over TLS. False if nothing is there to be read yet.
    private func mayRead(_ start: inout Start) throws(DatabaseReason) -> Bool {
        guard usesTLS, start.stage >= cpostgres_stage_authenticating, start.stage != cpostgres_stage_tls else {
            return true
        }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = Int(unsafe cpostgres_peek(connection, &bytes, Int32(bytes.count)))
        guard count >= 0 else { throw end(.closed) }
        if let refusal = start.messages.refusal(of: bytes[..<count].dropFirst(start.checked)) { throw end(refusal) }
        return count > 0
    }

    private func finish(until deadline: ContinuousClock.Instant) throws(DatabaseReason) -> [[[UInt8]?]] {
        allowance = (wire?.received ?? 0) + Session.mostBytes
        while true {
            let left = unsafe cpostgres_flush(connection)
            guard left >= 0 else { throw end(lastFailure) }
            guard left > 0 else { break }
            guard try awaits(POLLOUT | POLLIN, until: deadline) else { throw end(.timedOut) }
            guard unsafe cpostgres_consume(connection) else { throw end(lastFailure) }
        }
        var rows: [[[UInt8]?]] = []
        var memory = 0
        var failure: DatabaseReason?
        while true {
            while unsafe cpostgres_is_busy(connection) {
                guard try awaits(POLLIN, until: deadline) else { throw end(.timedOut) }
                guard unsafe cpostgres_consume(connection) else { throw end(failure ?? lastFailure) }
            }
            guard let result = unsafe cpostgres_result_next(connection) else { break }
            defer { unsafe cpostgres_result_free(result) }
            if unsafe cpostgres_result_is_good(result) {
                unsafe append(result, to: &rows, &memory)
                guard memory <= Session.mostMemory else { throw end(.tooMuch) }
            } else if failure == nil {
                failure = unsafe Self.failure(of: result)
            }
        }
        if let failure {
            if failure.endsConnection { throw end(failure) }
            throw failure
        }
        // libpq keeps some of what it was told as long as the connection lives.
        if let wire, wire.received > Session.mostBytes { isUsable = false }
        return rows
    }

    private func append(_ result: OpaquePointer, to rows: inout [[[UInt8]?]], _ memory: inout Int) {
        let columns = unsafe cpostgres_result_columns(result)
        for row in 0..<(unsafe cpostgres_result_rows(result)) {
            rows.append(
                (0..<columns).map { column in
                    var count: Int32 = 0
                    guard let value = unsafe cpostgres_result_value(result, row, column, &count) else { return nil }
                    memory += Int(count)
                    return unsafe [UInt8](UnsafeBufferPointer(start: value, count: Int(count)))
                })
            memory += 64 * (1 + Int(columns))
        }
    }

    /// Moves bytes between the server and libpq without waiting.
    private func move(
        _ check: ([UInt8], Int32) throws(DatabaseReason) -> Void = { _, _ in }
    ) throws(DatabaseReason) {
        guard let wire else { return }
        do throws(DatabaseReason) {
            try wire.move { bytes throws(DatabaseReason) in
                guard wire.received <= allowance else { throw .tooMuch }
                try check(bytes, wire.server)
            }
        } catch {
            throw end(error)
        }
    }

    private var isReadable: Bool {
        var entry = pollfd(fd: unsafe cpostgres_socket(connection), events: Int16(POLLIN), revents: 0)
        return unsafe cpostgres_pending(connection) > 0 || poll(&entry, 1, 0) > 0
    }

    /// Waits for an event of libpq's socket; false when the deadline has passed.
    private func awaits(
        _ events: Int32, until deadline: ContinuousClock.Instant,
        check: ([UInt8], Int32) throws(DatabaseReason) -> Void = { _, _ in }
    ) throws(DatabaseReason) -> Bool {
        while true {
            try move(check)
            let left = ContinuousClock.now.duration(to: deadline)
            if events & POLLIN != 0, unsafe cpostgres_pending(connection) > 0 { return true }
            let own = unsafe cpostgres_socket(connection)
            guard own >= 0 else { throw end(.closed) }
            let others = wire?.events ?? 0
            var entries = [
                pollfd(fd: own, events: Int16(events), revents: 0),
                pollfd(fd: others == 0 ? -1 : descriptor, events: Int16(others), revents: 0),
            ]
            // A response that has arrived is read, even if the deadline passed while the process was stopped.
            if unsafe poll(&entries, 2, Wake.milliseconds(left)) > 0, entries[0].revents != 0 { return true }
            guard left > .zero else { return false }
        }
    }

    private func end(_ failure: DatabaseReason) -> DatabaseReason {
        isUsable = false
        return failure
    }

    private static func failure(of result: OpaquePointer) -> DatabaseReason {
        // libpq makes a result without a state when the connection ends.
        guard let state = unsafe cpostgres_result_state(result) else { return .closed }
        let detail = unsafe cpostgres_result_detail(result).map { unsafe String(cString: $0) }
        return .of(state: unsafe String(cString: state), detail: detail)
    }

    private var lastFailure: DatabaseReason {
        ServerState.code(in: unsafe String(cString: cpostgres_error(connection)))
            .map { .of(state: $0, detail: nil) } ?? .closed
    }

    /// Why no connection was made, by how far it came. The library has no other sign; its texts are for people.
    private func failureToConnect(at stage: Int32) -> DatabaseReason {
        isUsable = false
        if let code = ServerState.code(in: unsafe String(cString: cpostgres_error(connection))) {
            return switch DatabaseReason.of(state: code, detail: nil) {
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

/// The SQLSTATE in the text of a server's error: the last five letters or digits between the severity and a colon.
enum ServerState {
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

/// What a server may send before a connection is ready. On request, libpq sends the password in clear text or as an MD5
/// digest, which reveals it to an impostor that listens in the server's place. libpq also computes as many rounds of a
/// digest as the server names, and cannot be interrupted. So this type reads what the server sends before libpq gets it.
struct StartCheck: Sendable {
    /// The server has proved its name by a certificate. Then it may ask for any proof of the role.
    let isVerified: Bool
    private static let longestMessage = 8_192
    /// A round takes about a microsecond. PostgreSQL's default is 4,096.
    static let mostIterations = 1_000_000
    private var message: [UInt8] = []
    init(isVerified: Bool) { self.isVerified = isVerified }

    /// Reads what follows. Returns why libpq must not get it; nil if it may. An unknown server may only send an error.
    mutating func refusal(of bytes: some Sequence<UInt8>, isKnown: Bool = true) -> DatabaseReason? {
        for byte in bytes {
            message.append(byte)
            guard isKnown || message[0] == UInt8(ascii: "E") else { return .foreignServer(uid: nil) }
            guard message.count >= 5 else { continue }
            let length = Int(message[1...4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            // An error without a length is of a server that could not start a process.
            if message[0] == UInt8(ascii: "E"), !(8...30_000).contains(length) { return nil }
            guard (4...StartCheck.longestMessage).contains(length) else { return .tooMuch }
            guard message.count == length + 1 else { continue }
            if message[0] == UInt8(ascii: "R"), let refusal = refusal(ofRequest: message[5...]) { return refusal }
            message.removeAll(keepingCapacity: true)
        }
        return nil
    }

    private func refusal(ofRequest body: ArraySlice<UInt8>) -> DatabaseReason? {
        guard body.count >= 4 else { return .malformed }
        switch body.prefix(4).reduce(UInt32(0), { $0 << 8 | UInt32($1) }) {
        // Let in; the names of mechanisms, which are SCRAM's; its last message.
        case 0, 10, 12: return nil
        case 11:
            guard let count = StartCheck.iterations(in: body.dropFirst(4)) else { return .malformed }
            return count <= StartCheck.mostIterations ? nil : .tooMuch
        default: return isVerified ? nil : .weakAuthentication
        }
    }

    /// The number in the server's first message of SCRAM (RFC 5802, section 7): `r=…,s=…,i=NUMBER`.
    private static func iterations(in text: ArraySlice<UInt8>) -> Int? {
        let parts = text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[2].starts(with: "i=".utf8) else { return nil }
        let digits = parts[2].dropFirst(2)
        guard (1...10).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}

/// Carries the bytes of one connection between the server and libpq, which gets one end of a pair of sockets in place
/// of its own. libpq keeps what it has not understood yet, so a server that never ends a message would fill the memory,
/// and it acts on what it reads at once. Here the bytes are counted and read before. Used by one thread.
final class Wire {
    let server: Int32
    private let inner: Int32
    private let inode: ino_t
    private var incoming: ArraySlice<UInt8> = []
    private var outgoing: ArraySlice<UInt8> = []
    private(set) var isEnded = false
    private(set) var received = 0
    private static let most = 65_536

    /// Takes the connected socket from the descriptor, which becomes one end of a pair. Nil if that failed.
    init?(replacing descriptor: Int32) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        defer { close(ends[1]) }
        var facts = stat()
        let taken = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard taken >= 0, cpostgres_replace(descriptor, ends[1]), unsafe fstat(descriptor, &facts) == 0 else {
            close(ends[0])
            if taken >= 0 { close(taken) }
            return nil
        }
        (inner, server, inode) = (ends[0], taken, facts.st_ino)
    }

    deinit {
        close(inner)
        close(server)
    }

    /// True if the descriptor is still the end of the pair: libpq may have begun another connection.
    func isBehind(_ descriptor: Int32) -> Bool {
        var facts = stat()
        return unsafe fstat(descriptor, &facts) == 0 && facts.st_ino == inode && facts.st_mode & S_IFMT == S_IFSOCK
    }

    var events: Int32 { (incoming.isEmpty && !isEnded ? POLLIN : 0) | (outgoing.isEmpty ? 0 : POLLOUT) }
    /// True if bytes of the server wait until libpq has taken the former ones.
    var hasIncoming: Bool { !incoming.isEmpty }

    /// Moves what can be moved without waiting. `check` sees what comes from the server, and may throw.
    func move(_ check: ([UInt8]) throws(DatabaseReason) -> Void) throws(DatabaseReason) {
        while true {
            var isMoved = false
            if outgoing.isEmpty, let bytes = Wire.read(inner) { outgoing = bytes[...] }
            if !outgoing.isEmpty, let count = Wire.write(outgoing, to: server) {
                // A server that takes no more may have said why.
                outgoing = count == 0 ? [] : outgoing.dropFirst(count)
                isMoved = count > 0
            }
            if incoming.isEmpty, !isEnded, let bytes = Wire.read(server) {
                if bytes.isEmpty { end() }
                received += bytes.count
                try check(bytes)
                incoming = bytes[...]
            }
            if !incoming.isEmpty, let count = Wire.write(incoming, to: inner) {
                incoming = count == 0 ? [] : incoming.dropFirst(count)
                isMoved = isMoved || count > 0
            }
            guard isMoved else { return }
        }
    }

    /// libpq is told of the end when it has read what came before.
    private func end() {
        isEnded = true
        shutdown(inner, Int32(SHUT_WR))
    }

    /// What can be read now; empty at the end, nil if there is nothing yet.
    private static func read(_ descriptor: Int32) -> [UInt8]? {
        var count = 0
        var code: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: most) { buffer, initialized in
            repeat {
                count = unsafe recv(descriptor, buffer.baseAddress, most, Int32(MSG_DONTWAIT))
                code = count < 0 ? errno : 0
            } while code == EINTR
            initialized = max(count, 0)
        }
        return code == EAGAIN ? nil : bytes
    }

    /// How many bytes were written; 0 if the other end is closed, nil if none can be written now.
    private static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Int? {
        let count = unsafe bytes.withUnsafeBytes { buffer in
            unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        if count < 0, errno == EAGAIN || errno == EINTR { return nil }
        return max(count, 0)
    }
}
