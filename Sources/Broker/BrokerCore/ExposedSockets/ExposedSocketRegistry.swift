internal import Cryptography
public import SessionVault

/// The exposed sockets: those of the configuration, and those that calls made, which survive a restart. A socket is
/// open exactly as long as it is in ``open``.
public actor ExposedSocketRegistry {
    public struct Listening: Sendable {
        /// Listens on the socket, which serves the accounts that it exposes.
        public let open: @Sendable (ExposedSocket) async throws(BrokerError) -> Void
        /// Ends its connections and removes the socket's file.
        public let close: @Sendable (ExposedSocket) async -> Void

        public init(
            open: @escaping @Sendable (ExposedSocket) async throws(BrokerError) -> Void,
            close: @escaping @Sendable (ExposedSocket) async -> Void
        ) {
            self.open = open
            self.close = close
        }
    }

    public enum Fact: Sendable {
        case opened(ExposedSocket)
        case closed(ExposedSocket, Ending)
        /// A socket could not be opened. The sentence says why.
        case failed(name: String, reason: BrokerCore.Reason)
        /// The record of exposed sockets is damaged or lost.
        case damaged(reason: BrokerCore.Reason)
    }

    public enum Ending: String, Sendable {
        case revoked, expired
        /// The record is lost, and this socket may have been revoked.
        case forgotten
        /// The configuration no longer has it, or has changed it.
        case configuration
        /// An account that it showed is configured for another provider or client.
        case accountChanged = "account_changed"
    }

    let listening: Listening
    let file: StateFile?
    let clock: BrokerClock
    let binding: @Sendable (AccountName) async -> SessionBinding?
    let record: @Sendable (Fact) -> Void
    var open: [String: ExposedSocket] = [:]
    /// Where in the configuration the tables stand, by name.
    var tables: [String: ExposedSocketTable] = [:]
    var places: [String: String] = [:]
    private(set) var closed: [ClosedSocket] = []
    /// The file is older than the state in memory; it is written again.
    var isUnsaved = false
    /// A file beside the record says that the record was written once.
    var isMarked = false
    /// The record is lost or damaged. Until the configuration is applied, each of its tables counts as revoked.
    var isForgotten = false
    private var turn: Promise<Void>?
    private var signal = Promise<Void>()

    /// How many may be open at a time. Where a socket is opened, its connections are limited too.
    public static let most = 64

    public init(
        listening: Listening, file: StateFile?, clock: BrokerClock = .system,
        binding: @escaping @Sendable (AccountName) async -> SessionBinding?,
        record: @escaping @Sendable (Fact) -> Void = { _ in }
    ) {
        self.listening = listening
        self.file = file
        self.clock = clock
        self.binding = binding
        self.record = record
    }

    // MARK: Looking

    public var all: [ExposedSocket] { open.values.sorted { $0.name < $1.name } }

    public func find(_ word: String) -> ExposedSocket? { open[word] ?? open.values.first { $0.id == word } }

    /// Closed sockets that are listed with the reason, by name.
    public var missing: [ClosedSocket] { closed.sorted { $0.name < $1.name } }

    /// The names of sockets that calls made. No table of the configuration may use them.
    public var namesOfCalls: Set<String> {
        Set((keptOfCalls + all.filter(\.order.isTransient)).map(\.name))
    }

    // MARK: Changing

    /// - Throws: `invalid`; `accountNotFound`; `conflict` for a name that is taken or for one socket too many;
    ///   `vaultFailed` if the state directory cannot be written; whatever keeps the socket from being opened.
    @discardableResult
    public func add(_ order: ExposedSocket.Order) async throws(BrokerError) -> ExposedSocket {
        try await exclusively { () throws(BrokerError) in try await self.added(order) }
    }

    private func added(_ order: ExposedSocket.Order) async throws(BrokerError) -> ExposedSocket {
        if let mistake = order.mistake {
            throw .invalid(field: mistake.member, reason: .stated("\(mistake.reason)."))
        }
        if let place = places[order.name] {
            throw .conflict(.stated("\(order.name) is defined in the configuration, \(place). Choose another name."))
        }
        if open[order.name] != nil {
            throw .conflict(.stated("\(order.name) is exposed already. Revoke it first."))
        }
        guard open.count < ExposedSocketRegistry.most else {
            throw .conflict(
                .stated("There are \(ExposedSocketRegistry.most) exposed sockets already. Revoke one first."))
        }
        var exposedSocket = made(of: order, .call)
        for name in order.accounts {
            guard let bound = await binding(name) else { throw .accountNotFound(name.rawValue) }
            exposedSocket.bindings[name] = bound
        }
        try await begin(exposedSocket)
        forgetClosed(order.name, isOfCall: true)
        save()
        guard !isUnsaved || order.isTransient else {
            // The socket is to survive the next start. If the record cannot be written, it is not made.
            await end(exposedSocket, .revoked)
            save()
            throw .vaultFailed(.stated("The state directory cannot be written, so \(order.name) was not exposed."))
        }
        return exposedSocket
    }

    /// Ends an exposed socket and removes its record. One of the configuration stays closed until its table changes.
    ///
    /// - Throws: `nothingHeld` if there is none of this name; `vaultFailed` if it is closed but the state directory
    ///   cannot be written, so that the next start may open it again.
    @discardableResult
    public func revoke(_ word: String) async throws(BrokerError) -> ExposedSocket {
        try await exclusively { () throws(BrokerError) -> ExposedSocket in
            guard let exposedSocket = self.find(word) ?? self.closedOfCall(word) else {
                throw .nothingHeld(self.whyNothing(word))
            }
            if self.open[exposedSocket.name] != nil {
                await self.end(exposedSocket, .revoked)
            } else {
                self.forgetClosed(exposedSocket.name, isOfCall: true)
                self.isUnsaved = true
            }
            self.save()
            guard !self.isUnsaved else {
                let name = exposedSocket.name
                throw .vaultFailed(
                    .stated(
                        "\(name) is closed. But the state directory cannot be written: if the daemon ends before it "
                            + "can be, its next start opens \(name) again."))
            }
            return exposedSocket
        }
    }

    private func closedOfCall(_ word: String) -> ExposedSocket? {
        closed.map(\.exposedSocket).first { $0.isOfCall && ($0.name == word || $0.id == word) }
    }

    private func whyNothing(_ word: String) -> Reason {
        guard let known = closed.first(where: { $0.name == word }) else {
            return .stated("Nothing is exposed under this name.")
        }
        return .both(.stated("\(known.name) is closed already."), known.detail)
    }

    // MARK: Time

    public func keep() async {
        while !Task.isCancelled {
            await exclusively {
                let now = self.clock.bootInstant
                for exposedSocket in self.all where exposedSocket.hasExpired(at: now) {
                    await self.end(exposedSocket, .expired)
                }
                self.save()
            }
            let wakeup = signal
            // A timer fires late after a suspend, so the clock is read every 30 seconds at least, if anything expires.
            let next = open.values.compactMap(\.expiry?.boot).min().map {
                max($0 - clock.bootInstant, .milliseconds(1))
            }
            let longest: Duration = next == nil && !isUnsaved ? .seconds(86_400) : .seconds(30)
            _ = await wakeup.wait(atMost: min(next ?? longest, longest))
        }
    }

    /// Closes all sockets at shutdown. They are opened again at the daemon's next start.
    public func closeAll() async {
        await exclusively {
            for exposedSocket in self.all { await self.listening.close(exposedSocket) }
            self.open = [:]
        }
    }

    // MARK: Parts

    func made(of order: ExposedSocket.Order, _ origin: ExposedSocket.Origin) -> ExposedSocket {
        ExposedSocket(
            id: RandomToken.identifier(), order: order, origin: origin, createdAt: clock.wallInstant,
            expiry: order.lifetime.map { Deadline(in: $0, by: clock) })
    }

    func begin(_ exposedSocket: ExposedSocket) async throws(BrokerError) {
        try await listening.open(exposedSocket)
        open[exposedSocket.name] = exposedSocket
        if exposedSocket.isOfCall, !exposedSocket.order.isTransient { isUnsaved = true }
        record(.opened(exposedSocket))
        wake()
    }

    private func wake() {
        let former = signal
        signal = Promise()
        former.fulfil(())
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
        if !exposedSocket.order.isTransient { isUnsaved = true }
        await listening.close(exposedSocket)
        record(.closed(exposedSocket, ending))
    }

    func note(_ what: ClosedSocket) {
        forgetClosed(what.name, isOfCall: what.exposedSocket.isOfCall)
        closed.append(what)
    }

    func forgetClosed(_ name: String?, isOfCall: Bool) {
        closed.removeAll { (name == nil || $0.name == name) && $0.exposedSocket.isOfCall == isOfCall }
    }

    /// The sockets of calls that the file stores, also those that could not be opened: the next start tries again.
    private var keptOfCalls: [ExposedSocket] {
        let waiting = closed.filter { $0.reason == .failed && $0.exposedSocket.isOfCall }.map(\.exposedSocket)
        return all.filter { $0.isOfCall && !$0.order.isTransient }
            + waiting.filter { !$0.hasExpired(at: clock.bootInstant) }
    }

    /// The file that shows that the record existed, in case the record is lost.
    static func mark(beside file: StateFile) -> StateFile { file.sibling(named: "exposed-sockets.made") }

    /// The name of the record's file: if the mark exists and that file does not, the record was lost.
    private static let markText = Array("exposed-sockets.json\n".utf8)

    func save() {
        guard isUnsaved else { return }
        guard let file else { return isUnsaved = false }
        let kept = ExposedSocketRecord(exposedSockets: keptOfCalls, tables: tables)
        isUnsaved = (try? file.write(kept.encode(bootID: clock.bootID))) == nil
        if !isUnsaved, !isMarked {
            isMarked = (try? ExposedSocketRegistry.mark(beside: file).write(ExposedSocketRegistry.markText)) != nil
            isUnsaved = !isMarked
        }
        if isUnsaved { wake() }
    }

    func exclusively<Value: Sendable, Failure: Error>(
        _ change: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let previous = turn
        let mine = Promise<Void>()
        turn = mine
        await previous?.settle()
        defer { mine.fulfil(()) }
        return try await change()
    }

    static func cause(of error: BrokerError) -> Reason {
        switch error {
        case .conflict(let reason, _), .misconfigured(let reason), .nothingHeld(let reason), .vaultFailed(let reason),
            .vaultLocked(let reason, _), .vaultUnreachable(let reason, _):
            reason
        case .invalid(let field, let reason): .both(.stated("\(field):"), reason)
        case .unusableSetting(let setting): setting.reason
        default: .stated("The cause is unknown.")
        }
    }
}
