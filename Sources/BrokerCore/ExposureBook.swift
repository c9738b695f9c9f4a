internal import Cryptography
public import SessionVault

/// The exposures there are: those of the configuration, and those that calls made, which a restart does not end. Who is
/// not in this book has no socket, and who is has one.
public actor ExposureBook {
    /// How sockets come and go.
    public struct Door: Sendable {
        /// Listens for the exposure; who connects gets what it shows.
        public let open: @Sendable (Exposure) async throws(BrokerError) -> Void
        /// Ends its connections, and removes its sockets.
        public let close: @Sendable (Exposure) async -> Void

        public init(
            open: @escaping @Sendable (Exposure) async throws(BrokerError) -> Void,
            close: @escaping @Sendable (Exposure) async -> Void
        ) {
            self.open = open
            self.close = close
        }
    }

    /// What happens, for the records.
    public enum Fact: Sendable {
        case opened(Exposure)
        case closed(Exposure, Ending)
        /// It has no socket, though it should; the sentence says why.
        case failed(name: String, reason: String)
        /// The file of those that calls made made no sense.
        case damaged(reason: String)
    }

    /// Why one ended.
    public enum Ending: String, Sendable {
        case revoked, expired
        /// The configuration no longer has it, has it otherwise, or has another one of the name.
        case configuration
    }

    private let door: Door
    private let file: StateFile?
    private let clock: BrokerClock
    private let record: @Sendable (Fact) -> Void
    private var open: [String: Exposure] = [:]
    /// Whose time is over: they do not come back by a reload that changes nothing of them.
    private var lapsed: [String: Exposure.Order] = [:]
    /// The file does not say what is so; it is written again.
    private var isUnsaved = false
    /// Changes take turns: each waits for sockets.
    private var turn: Promise<Void>?
    private var bell = Promise<Void>()

    /// So many may be open at a time, and each may have so many connections: see the door.
    public static let most = 64

    public init(
        door: Door, file: StateFile?, clock: BrokerClock = .system,
        record: @escaping @Sendable (Fact) -> Void = { _ in }
    ) {
        self.door = door
        self.file = file
        self.clock = clock
        self.record = record
    }

    // MARK: Looking

    /// All of them, by name.
    public var all: [Exposure] { open.values.sorted { $0.name < $1.name } }

    /// The one of this id, or of this name.
    public func find(_ word: String) -> Exposure? { open[word] ?? open.values.first { $0.id == word } }

    // MARK: Changing

    /// Takes over what the configuration says, each with its place there. What did not change keeps its connections;
    /// what calls made gives way where it has the same name.
    public func configure(_ orders: [(order: Exposure.Order, place: String)]) async {
        await exclusively {
            let wanted = Dictionary(orders.map { ($0.order.name, $0.order) }) { first, _ in first }
            self.lapsed = self.lapsed.filter { wanted[$0.key] == $0.value }
            for exposure in self.all {
                let isConfigured = exposure.origin != .call
                if wanted[exposure.name].map({ isConfigured && $0 == exposure.order }) ?? !isConfigured { continue }
                await self.end(exposure, .configuration)
            }
            for (order, place) in orders where self.open[order.name] == nil && self.lapsed[order.name] == nil {
                let exposure = self.made(of: order, .configuration(place))
                do throws(BrokerError) {
                    try await self.begin(exposure)
                } catch {
                    self.record(.failed(name: order.name, reason: ExposureBook.words(of: error)))
                }
            }
            self.save()
        }
    }

    /// Opens again what calls had made before the last end of the daemon.
    public func restore() async {
        await exclusively {
            for exposure in self.remembered() where self.open[exposure.name] == nil {
                guard !exposure.hasExpired(at: self.clock.boot()) else {
                    self.record(.closed(exposure, .expired))
                    self.isUnsaved = true
                    continue
                }
                do throws(BrokerError) {
                    try await self.begin(exposure)
                } catch {
                    self.record(.failed(name: exposure.name, reason: ExposureBook.words(of: error)))
                }
            }
            self.save()
        }
    }

    private func remembered() -> [Exposure] {
        do throws(VaultError) {
            guard let bytes = try file?.read(atMost: ExposureRecord.maxSize) else { return [] }
            if let exposures = ExposureRecord.decode(bytes, by: clock) { return exposures }
            let place = file?.setAside()
            record(.damaged(reason: "It makes no sense\(place.map { ", and is now \($0)" } ?? "")."))
        } catch {
            record(.damaged(reason: ExposureBook.words(of: BrokerError(error))))
        }
        return []
    }

    /// Makes one.
    ///
    /// - Throws: `invalid`, `conflict` for a name that is taken or one too many, and whatever keeps it from a socket.
    @discardableResult
    public func add(_ order: Exposure.Order) async throws(BrokerError) -> Exposure {
        let result = await exclusively { () -> Result<Exposure, BrokerError> in
            do throws(BrokerError) { return .success(try await self.added(order)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private func added(_ order: Exposure.Order) async throws(BrokerError) -> Exposure {
        if let mistake = order.mistake { throw .invalid(field: mistake.member, reason: mistake.reason + ".") }
        if let known = open[order.name] {
            guard case .configuration(let place) = known.origin else {
                throw .conflict("\(order.name) is exposed already. Run: ringback expose revoke \(order.name)")
            }
            throw .conflict("\(order.name) stands in the configuration, \(place). Choose another name.")
        }
        guard open.count < ExposureBook.most else {
            throw .conflict("There are \(ExposureBook.most) exposures already. Revoke one: ringback expose list")
        }
        let exposure = made(of: order, .call)
        try await begin(exposure)
        save()
        guard !isUnsaved else {
            // A promise to survive the next start that cannot be kept is not made.
            await end(exposure, .revoked)
            save()
            throw .vaultFailed("The state directory cannot be written, so \(order.name) was not exposed.")
        }
        return exposure
    }

    /// Ends one that a call made: its connections, its sockets, and what would bring it back.
    @discardableResult
    public func revoke(_ word: String) async throws(BrokerError) -> Exposure {
        let result = await exclusively { () -> Result<Exposure, BrokerError> in
            guard let exposure = self.find(word) else {
                return .failure(.nothingHeld("Nothing is exposed as that. See: ringback expose list"))
            }
            if case .configuration(let place) = exposure.origin {
                return .failure(
                    .conflict("\(exposure.name) stands in the configuration: remove it from \(place), and reload."))
            }
            await self.end(exposure, .revoked)
            self.save()
            guard !self.isUnsaved else {
                return .failure(
                    .vaultFailed(
                        "\(exposure.name) is closed. But the state directory cannot be written: if the daemon ends "
                            + "before it can be, its next start opens \(exposure.name) again."))
            }
            return .success(exposure)
        }
        return try result.get()
    }

    // MARK: Time

    /// Ends what has expired, for as long as the daemon lives: until it is cancelled.
    public func keep() async {
        while !Task.isCancelled {
            await exclusively {
                let now = self.clock.boot()
                for exposure in self.all where exposure.hasExpired(at: now) {
                    if case .configuration = exposure.origin { self.lapsed[exposure.name] = exposure.order }
                    await self.end(exposure, .expired)
                }
                self.save()
            }
            let rung = bell
            // A laptop that slept wakes late: it is looked at again before long. Where nothing ends by itself, nobody wakes.
            let next = open.values.compactMap(\.expiry?.boot).min().map { max($0 - clock.boot(), 1) }
            let longest = next == nil && !isUnsaved ? 86_400_000 : 30_000
            _ = await rung.wait(atMost: .milliseconds(min(next ?? longest, longest)))
        }
    }

    /// Closes all sockets, since the daemon ends. They are opened again at its next start.
    public func closeAll() async {
        await exclusively {
            for exposure in self.all { await self.door.close(exposure) }
            self.open = [:]
        }
    }

    // MARK: Parts

    private func made(of order: Exposure.Order, _ origin: Exposure.Origin) -> Exposure {
        Exposure(
            id: RandomToken.identifier(), order: order, origin: origin, createdAt: clock.now(),
            expiry: order.lifetime.map { Deadline(in: $0, by: clock) })
    }

    private func begin(_ exposure: Exposure) async throws(BrokerError) {
        try await door.open(exposure)
        open[exposure.name] = exposure
        if exposure.origin == .call { isUnsaved = true }
        record(.opened(exposure))
        ring()
    }

    /// ``keep()`` looks again.
    private func ring() {
        let rung = bell
        bell = Promise()
        rung.fulfil(())
    }

    private func end(_ exposure: Exposure, _ ending: Ending) async {
        open[exposure.name] = nil
        if exposure.origin == .call { isUnsaved = true }
        await door.close(exposure)
        record(.closed(exposure, ending))
    }

    private func save() {
        guard isUnsaved else { return }
        guard let file else { return isUnsaved = false }
        let kept = all.filter { $0.origin == .call }
        isUnsaved = (try? file.write(ExposureRecord.encode(kept, bootID: clock.bootID))) == nil
        if isUnsaved { ring() }
    }

    /// Runs a change when those before it are done.
    private func exclusively<Value: Sendable>(_ change: () async -> Value) async -> Value {
        let previous = turn
        let mine = Promise<Void>()
        turn = mine
        await previous?.settle()
        defer { mine.fulfil(()) }
        return await change()
    }

    private static func words(of error: BrokerError) -> String {
        switch error {
        case .conflict(let reason), .misconfigured(let reason), .vaultFailed(let reason): reason
        case .invalid(let field, let reason): "\(field): \(reason)"
        case .vaultLocked(let reason), .nothingHeld(let reason): reason
        default: "It cannot be done now."
        }
    }
}
