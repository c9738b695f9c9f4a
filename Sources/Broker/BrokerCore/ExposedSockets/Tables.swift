internal import Cryptography
internal import RingbackBase
public import SessionVault

/// Opens sockets at start and at a reload: first those of calls, then the configuration's tables, which must not take
/// the name of a socket that programs are connected to.
extension ExposedSocketRegistry {
    /// The names that calls have taken, read from the state directory without the daemon; none if it cannot be read.
    public static func namesOfCalls(in file: StateFile, by clock: BrokerClock = .system) -> Set<String> {
        guard let bytes = try? file.read(atMost: ExposedSocketRecord.maxSize),
            let record = ExposedSocketRecord(reading: bytes, by: clock)
        else { return [] }
        return Set(record.exposedSockets.filter { !$0.hasExpired(at: clock.bootInstant) }.map(\.name))
    }

    /// Opens again what calls had made, and reads what is remembered of the tables. Once, before ``configure(_:)``.
    public func restore() async {
        await exclusively {
            let record = self.remembered()
            self.tables = record.tables
            for exposedSocket in record.exposedSockets where self.open[exposedSocket.name] == nil {
                await self.reopen(exposedSocket)
            }
            self.save()
        }
    }

    private func remembered() -> ExposedSocketRecord {
        guard let file else { return ExposedSocketRecord() }
        // If the mark cannot be read, it exists.
        isMarked = (try? ExposedSocketRegistry.mark(beside: file).read(atMost: 256) != nil) ?? true
        do throws(VaultError) {
            guard let bytes = try file.read(atMost: ExposedSocketRecord.maxSize) else {
                if isMarked { forgotten(.stated("It is lost.")) }
                return ExposedSocketRecord()
            }
            if let known = ExposedSocketRecord(reading: bytes, by: clock) { return known }
            let place = file.setAside().map { ". It was renamed to \($0)" } ?? ""
            forgotten(.stated("The file is not valid\(place)."))
        } catch {
            forgotten(ExposedSocketRegistry.cause(of: BrokerError(error)))
        }
        return ExposedSocketRecord()
    }

    private func forgotten(_ reason: Reason) {
        isForgotten = true
        record(.damaged(reason: reason))
    }

    private func reopen(_ remembered: ExposedSocket) async {
        var exposedSocket = remembered
        guard !exposedSocket.hasExpired(at: clock.bootInstant) else {
            isUnsaved = true
            return record(.closed(exposedSocket, .expired))
        }
        if exposedSocket.bindings.isEmpty { exposedSocket = await bound(exposedSocket) }
        guard await isStillBound(exposedSocket) else {
            isUnsaved = true
            note(ClosedSocket(exposedSocket, .accountChanged))
            return record(.closed(exposedSocket, .accountChanged))
        }
        await tryToBegin(exposedSocket)
    }

    private func tryToBegin(_ exposedSocket: ExposedSocket) async {
        do throws(BrokerError) {
            try await begin(exposedSocket)
        } catch {
            let reason = ExposedSocketRegistry.cause(of: error)
            var unsafePath: String?
            if case .conflict(_, .openToOthers(let path)) = error { unsafePath = path }
            note(ClosedSocket(exposedSocket, failed: reason, unsafePath: unsafePath))
            record(.failed(name: exposedSocket.name, reason: reason))
        }
    }

    // MARK: Bindings

    /// Adds the bindings of its accounts. One that is not configured gets a binding that no account can have.
    private func bound(_ exposedSocket: ExposedSocket) async -> ExposedSocket {
        var exposedSocket = exposedSocket
        for name in exposedSocket.accounts {
            exposedSocket.bindings[name] = await binding(name) ?? SessionBinding(provider: "", clientID: "")
        }
        return exposedSocket
    }

    /// False if an account is now bound to another provider or client. One that is not configured may come back.
    private func isStillBound(_ exposedSocket: ExposedSocket) async -> Bool {
        for name in exposedSocket.accounts {
            guard let now = await binding(name) else { continue }
            guard exposedSocket.isBound(name, to: now) else { return false }
        }
        return true
    }

    // MARK: The configuration

    /// Takes over the configuration's tables, after the accounts: a socket that shows an account with another binding
    /// is closed. What did not change keeps its connections and its expiry. A socket of a call keeps its name.
    public func configure(_ orders: [(order: ExposedSocket.Order, place: String)]) async {
        await exclusively {
            let wanted = Dictionary(orders.map { ($0.order.name, $0) }) { first, _ in first }
            self.places = wanted.mapValues(\.place)
            self.forgetClosed(nil, isOfCall: false)
            for (name, table) in self.tables where wanted[name].map({ table.matches($0.order) }) != true {
                self.tables[name] = nil
                self.isUnsaved = true
            }
            for exposedSocket in self.all {
                await self.endIfChanged(exposedSocket, wanted[exposedSocket.name]?.order)
            }
            for (order, place) in orders { await self.apply(order, place) }
            self.isForgotten = false
            self.save()
        }
    }

    private func endIfChanged(_ exposedSocket: ExposedSocket, _ order: ExposedSocket.Order?) async {
        let isBound = await isStillBound(exposedSocket)
        if exposedSocket.isOfCall {
            if !isBound { await end(exposedSocket, .accountChanged) }
        } else if !isBound || order != exposedSocket.order {
            await end(exposedSocket, .configuration)
        }
    }

    private func apply(_ order: ExposedSocket.Order, _ place: String) async {
        let fresh = made(of: order, .configuration(place))
        guard !namesOfCalls.contains(order.name) else {
            let clash = ClosedSocket(fresh, .nameTaken)
            note(clash)
            return record(.failed(name: order.name, reason: clash.detail))
        }
        guard open[order.name] == nil else {
            open[order.name]?.origin = .configuration(place)
            return
        }
        let table = tables[order.name] ?? ExposedSocketTable(order, by: clock, ending: isForgotten ? .forgotten : nil)
        if tables.updateValue(table, forKey: order.name) == nil, table.isKept { isUnsaved = true }
        let exposedSocket = ExposedSocket(
            id: fresh.id, order: order, origin: fresh.origin, createdAt: fresh.createdAt, expiry: table.expiry)
        switch table.ending {
        case .revoked: note(ClosedSocket(exposedSocket, .revoked))
        case .forgotten: note(ClosedSocket(exposedSocket, .forgotten))
        case nil where !exposedSocket.hasExpired(at: clock.bootInstant): await tryToBegin(await bound(exposedSocket))
        case nil:
            // It expired while the daemon was not running.
            tables[order.name]?.ending = .expired
            isUnsaved = true
            note(ClosedSocket(exposedSocket, .expired))
            record(.closed(exposedSocket, .expired))
        default: note(ClosedSocket(exposedSocket, .expired))
        }
    }
}

/// The record of a table. As long as it does not change, no reload or restart extends its lifetime or opens it again.
struct ExposedSocketTable: Sendable, Equatable {
    /// A digest of the table's content. Formatting does not change it.
    let digest: String
    /// How long it is open from its first start; nil for no bound. Whole seconds.
    let lifetime: Duration?
    /// Computed at its first start.
    let expiry: Deadline?
    /// Why it has ended, if it has: `revoked`, `expired` or `forgotten`.
    var ending: ExposedSocketRegistry.Ending?

    var isKept: Bool { expiry != nil || ending != nil }

    func matches(_ order: ExposedSocket.Order) -> Bool { digest == ExposedSocketTable.digest(of: order) }

    static func digest(of order: ExposedSocket.Order) -> String {
        Digest.hex(Digest.sha256(JSON.object(ExposedSocketRecord.members(of: order)).serialized()))
    }
}

extension ExposedSocketTable {
    init(_ order: ExposedSocket.Order, by clock: BrokerClock, ending: ExposedSocketRegistry.Ending? = nil) {
        self.init(
            digest: ExposedSocketTable.digest(of: order), lifetime: order.lifetime,
            expiry: order.lifetime.map { Deadline(in: $0, by: clock) }, ending: ending)
    }
}
