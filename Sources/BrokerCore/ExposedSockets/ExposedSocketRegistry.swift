internal import Cryptography
public import SessionVault

/// The exposures there are: those of the configuration, and those that calls made, which a restart does not end. Who is
/// not in this book has no socket, and who is has one.
public actor ExposedSocketRegistry {
    /// How sockets come and go.
    public struct Door: Sendable {
        /// Listens for the exposure; who connects gets what it shows.
        public let open: @Sendable (ExposedSocket) async throws(BrokerError) -> Void
        /// Ends its connections, and removes its sockets.
        public let close: @Sendable (ExposedSocket) async -> Void

        public init(
            open: @escaping @Sendable (ExposedSocket) async throws(BrokerError) -> Void,
            close: @escaping @Sendable (ExposedSocket) async -> Void
        ) {
            self.open = open
            self.close = close
        }
    }

    /// What happens, for the records.
    public enum Fact: Sendable {
        case opened(ExposedSocket)
        case closed(ExposedSocket, Ending)
        /// It has no socket, though it should; the sentence says why.
        case failed(name: String, reason: String)
        /// The file of what is remembered made no sense, or is lost.
        case damaged(reason: String)
    }

    /// Why one ended.
    public enum Ending: String, Sendable {
        case revoked, expired
        /// What was remembered is lost, and this may have been revoked.
        case forgotten
        /// The configuration no longer has it, or has it otherwise.
        case configuration
        /// An account that it showed is configured for another provider or client.
        case accountChanged = "account_changed"
    }

    let callbackReceiver: Door
    let file: StateFile?
    let clock: BrokerClock
    /// What an account's sessions are bound to now; nil without such an account.
    let binding: @Sendable (AccountName) async -> SessionBinding?
    let record: @Sendable (Fact) -> Void
    var open: [String: ExposedSocket] = [:]
    /// The configuration's, open or not.
    var tables: [String: ExposedSocketTable] = [:]
    /// Where in the configuration they stand.
    var places: [String: String] = [:]
    private(set) var closed: [ClosedSocket] = []
    /// The file does not say what is so; it is written again.
    var isUnsaved = false
    /// There is a mark beside the file, which says that the file was written once.
    var isMarked = false
    /// The file is lost or damaged: until the configuration's tables have been taken up, each may have been revoked.
    var isForgotten = false
    /// Changes take turns: each waits for sockets.
    private var turn: Promise<Void>?
    private var signal = Promise<Void>()

    /// So many may be open at a time, and each may have so many connections: see the door.
    public static let most = 64

    public init(
        callbackReceiver: Door, file: StateFile?, clock: BrokerClock = .system,
        binding: @escaping @Sendable (AccountName) async -> SessionBinding?,
        record: @escaping @Sendable (Fact) -> Void = { _ in }
    ) {
        self.callbackReceiver = callbackReceiver
        self.file = file
        self.clock = clock
        self.binding = binding
        self.record = record
    }

    // MARK: Looking

    /// All of them, by name.
    public var all: [ExposedSocket] { open.values.sorted { $0.name < $1.name } }

    /// The one of this id, or of this name.
    public func find(_ word: String) -> ExposedSocket? { open[word] ?? open.values.first { $0.id == word } }

    /// Those without a socket that somebody may look for, by name.
    public var missing: [ClosedSocket] { closed.sorted { $0.name < $1.name } }

    /// The names that calls have taken: no table of the configuration gets one of them.
    public var namesOfCalls: Set<String> { Set(keptOfCalls.map(\.name)) }

    // MARK: Changing

    /// Makes one.
    ///
    /// - Throws: `invalid`, `conflict` for a name that is taken or one too many, and whatever keeps it from a socket.
    @discardableResult
    public func add(_ order: ExposedSocket.Order) async throws(BrokerError) -> ExposedSocket {
        let result = await exclusively { () -> Result<ExposedSocket, BrokerError> in
            do throws(BrokerError) { return .success(try await self.added(order)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private func added(_ order: ExposedSocket.Order) async throws(BrokerError) -> ExposedSocket {
        if let mistake = order.mistake { throw .invalid(field: mistake.member, reason: mistake.reason + ".") }
        if let place = places[order.name] {
            throw .conflict("\(order.name) stands in the configuration, \(place). Choose another name.")
        }
        if open[order.name] != nil {
            throw .conflict("\(order.name) is exposed already. Revoke it first.")
        }
        guard open.count < ExposedSocketRegistry.most else {
            throw .conflict(
                "There are \(ExposedSocketRegistry.most) exposed sockets already. Revoke one first.")
        }
        var exposedSocket = made(of: order, .call)
        for name in order.accounts {
            guard let bound = await binding(name) else { throw .accountNotFound(name.rawValue) }
            exposedSocket.bindings[name] = bound
        }
        try await begin(exposedSocket)
        forgetClosed(order.name, isOfCall: true)
        save()
        guard !isUnsaved else {
            // A promise to survive the next start that cannot be kept is not made.
            await end(exposedSocket, .revoked)
            save()
            throw .vaultFailed("The state directory cannot be written, so \(order.name) was not exposed.")
        }
        return exposedSocket
    }

    /// Ends one: its connections, its sockets, and what would bring it back. One of the configuration stays closed for as
    /// long as its table says the same.
    @discardableResult
    public func revoke(_ word: String) async throws(BrokerError) -> ExposedSocket {
        let result = await exclusively { () -> Result<ExposedSocket, BrokerError> in
            guard let exposedSocket = self.find(word) ?? self.closedOfCall(word) else {
                return .failure(.nothingHeld(self.whyNothing(word)))
            }
            if self.open[exposedSocket.name] != nil {
                await self.end(exposedSocket, .revoked)
            } else {
                self.forgetClosed(exposedSocket.name, isOfCall: true)
                self.isUnsaved = true
            }
            self.save()
            guard !self.isUnsaved else {
                return .failure(
                    .vaultFailed(
                        "\(exposedSocket.name) is closed. But the state directory cannot be written: if the daemon ends "
                            + "before it can be, its next start opens \(exposedSocket.name) again."))
            }
            return .success(exposedSocket)
        }
        return try result.get()
    }

    private func closedOfCall(_ word: String) -> ExposedSocket? {
        closed.map(\.exposedSocket).first { $0.isOfCall && ($0.name == word || $0.id == word) }
    }

    private func whyNothing(_ word: String) -> String {
        guard let known = closed.first(where: { $0.name == word }) else {
            return "Nothing is exposed under this name."
        }
        return "\(known.name) is closed already. \(known.detail)"
    }

    // MARK: Time

    /// Ends what has expired, for as long as the daemon lives: until it is cancelled.
    public func keep() async {
        while !Task.isCancelled {
            await exclusively {
                let now = self.clock.boot()
                for exposedSocket in self.all where exposedSocket.hasExpired(at: now) {
                    await self.end(exposedSocket, .expired)
                }
                self.save()
            }
            let rung = signal
            // A laptop that slept wakes late: it is looked at again before long. Where nothing ends by itself, nobody wakes.
            let next = open.values.compactMap(\.expiry?.boot.milliseconds).min().map { max($0 - clock.boot(), 1) }
            let longest = next == nil && !isUnsaved ? 86_400_000 : 30_000
            _ = await rung.wait(atMost: .milliseconds(min(next ?? longest, longest)))
        }
    }

    /// Closes all sockets, since the daemon ends. They are opened again at its next start.
    public func closeAll() async {
        await exclusively {
            for exposedSocket in self.all { await self.callbackReceiver.close(exposedSocket) }
            self.open = [:]
        }
    }

    // MARK: Parts

    func made(of order: ExposedSocket.Order, _ origin: ExposedSocket.Origin) -> ExposedSocket {
        ExposedSocket(
            id: RandomToken.identifier(), order: order, origin: origin, createdAt: clock.now(),
            expiry: order.lifetime.map { Deadline(in: $0, by: clock) })
    }

    func begin(_ exposedSocket: ExposedSocket) async throws(BrokerError) {
        try await callbackReceiver.open(exposedSocket)
        open[exposedSocket.name] = exposedSocket
        if exposedSocket.isOfCall { isUnsaved = true }
        record(.opened(exposedSocket))
        ring()
    }

    /// ``keep()`` looks again.
    private func ring() {
        let rung = signal
        signal = Promise()
        rung.fulfil(())
    }

    func end(_ exposedSocket: ExposedSocket, _ ending: Ending) async {
        open[exposedSocket.name] = nil
        switch (exposedSocket.origin, ending) {
        case (.call, .accountChanged): note(ClosedSocket(exposedSocket, .accountChanged))
        case (.configuration, .revoked), (.configuration, .expired):
            tables[exposedSocket.name]?.ending = ending
            note(ClosedSocket(exposedSocket, ending == .revoked ? .revoked : .expired))
        default: break
        }
        isUnsaved = true
        await callbackReceiver.close(exposedSocket)
        record(.closed(exposedSocket, ending))
    }

    func note(_ what: ClosedSocket) {
        forgetClosed(what.name, isOfCall: what.exposedSocket.isOfCall)
        closed.append(what)
    }

    func forgetClosed(_ name: String?, isOfCall: Bool) {
        closed.removeAll { (name == nil || $0.name == name) && $0.exposedSocket.isOfCall == isOfCall }
    }

    /// What the file has of calls: one that could not be opened is tried again at the next start.
    private var keptOfCalls: [ExposedSocket] {
        let waiting = closed.filter { $0.reason == .failed && $0.exposedSocket.isOfCall }.map(\.exposedSocket)
        return all.filter(\.isOfCall) + waiting.filter { !$0.hasExpired(at: clock.boot()) }
    }

    /// Shows that the file was there, should it be lost.
    static func mark(beside file: StateFile) -> StateFile { file.sibling(named: "exposed-sockets.made") }

    private static let markText = Array(
        "exposed-sockets.json was made beside this file, and is not to be missing.\n".utf8)

    func save() {
        guard isUnsaved else { return }
        guard let file else { return isUnsaved = false }
        let kept = ExposedSocketRecord(exposedSockets: keptOfCalls, tables: tables)
        isUnsaved = (try? file.write(kept.encode(bootID: clock.bootID))) == nil
        if !isUnsaved, !isMarked {
            isMarked = (try? ExposedSocketRegistry.mark(beside: file).write(ExposedSocketRegistry.markText)) != nil
            isUnsaved = !isMarked
        }
        if isUnsaved { ring() }
    }

    /// Runs a change when those before it are done.
    func exclusively<Value: Sendable>(_ change: () async -> Value) async -> Value {
        let previous = turn
        let mine = Promise<Void>()
        turn = mine
        await previous?.settle()
        defer { mine.fulfil(()) }
        return await change()
    }

    static func words(of error: BrokerError) -> String {
        switch error {
        case .conflict(let reason), .misconfigured(let reason), .vaultFailed(let reason): reason
        case .invalid(let field, let reason): "\(field): \(reason)"
        case .vaultLocked(let reason), .nothingHeld(let reason): reason
        case .unusableSetting(let setting): setting.reason
        default: "It cannot be done now."
        }
    }
}
