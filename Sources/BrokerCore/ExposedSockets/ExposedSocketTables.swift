public import SessionVault

/// What is exposed without anybody asking now: what calls had made before the last end of the daemon, and what stands in
/// the configuration. The former come first: a table must not take a socket's name from under who is connected to it.
extension ExposedSocketRegistry {
    /// The names that calls have taken, as the state directory says without the daemon; none where it cannot be told.
    public static func namesOfCalls(in file: StateFile, by clock: BrokerClock = .system) -> Set<String> {
        guard let bytes = try? file.read(atMost: ExposedSocketRecord.maxSize),
            let record = ExposedSocketRecord(reading: bytes, by: clock)
        else { return [] }
        return Set(record.exposedSockets.filter { !$0.hasExpired(at: clock.boot()) }.map(\.name))
    }

    /// Opens again what calls had made before the last end of the daemon, and remembers what became of the
    /// configuration's. To be called once, before ``configure(_:)``.
    public func restore() async {
        await exclusively {
            let record = self.remembered()
            self.tables = record.tables
            for exposedSocket in record.exposedSockets where self.open[exposedSocket.name] == nil {
                await self.bringBack(exposedSocket)
            }
            self.save()
        }
    }

    private func remembered() -> ExposedSocketRecord {
        guard let file else { return ExposedSocketRecord() }
        do throws(VaultError) {
            isMarked = try ExposedSocketRegistry.mark(beside: file).read(atMost: 256) != nil
        } catch {
            // A mark that cannot be read is there.
            isMarked = true
        }
        do throws(VaultError) {
            guard let bytes = try file.read(atMost: ExposedSocketRecord.maxSize) else {
                if isMarked { forgotten("It is lost.") }
                return ExposedSocketRecord()
            }
            if let known = ExposedSocketRecord(reading: bytes, by: clock) { return known }
            let place = file.setAside()
            forgotten("It makes no sense\(place.map { ", and is now \($0)" } ?? "").")
        } catch {
            forgotten(ExposedSocketRegistry.words(of: BrokerError(error)))
        }
        return ExposedSocketRecord()
    }

    private func forgotten(_ reason: String) {
        isForgotten = true
        record(.damaged(reason: reason))
    }

    private func bringBack(_ remembered: ExposedSocket) async {
        var exposedSocket = remembered
        guard !exposedSocket.hasExpired(at: clock.boot()) else {
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
            let reason = ExposedSocketRegistry.words(of: error)
            note(ClosedSocket(exposedSocket, failed: reason))
            record(.failed(name: exposedSocket.name, reason: reason))
        }
    }

    // MARK: Bindings

    /// With what its accounts are bound to now. One that is not there is bound to nothing that could be.
    private func bound(_ exposedSocket: ExposedSocket) async -> ExposedSocket {
        var exposedSocket = exposedSocket
        for name in exposedSocket.accounts {
            exposedSocket.bindings[name] = await binding(name) ?? SessionBinding(provider: "", clientID: "")
        }
        return exposedSocket
    }

    /// False if one of its accounts is another one under the same name. One that is not configured now may come back.
    private func isStillBound(_ exposedSocket: ExposedSocket) async -> Bool {
        for name in exposedSocket.accounts {
            guard let now = await binding(name) else { continue }
            guard exposedSocket.isBound(name, to: now) else { return false }
        }
        return true
    }

    // MARK: The configuration

    /// Takes over what the configuration says, each with its place there. What did not change keeps its connections and
    /// its first end; what a call made keeps its name. To be called after the accounts were replaced: who shows one that
    /// is another one now is ended.
    public func configure(_ orders: [(order: ExposedSocket.Order, place: String)]) async {
        await exclusively {
            let wanted = Dictionary(orders.map { ($0.order.name, $0) }) { first, _ in first }
            self.places = wanted.mapValues(\.place)
            self.forgetClosed(nil, isOfCall: false)
            for (name, table) in self.tables where wanted[name].map({ table.says($0.order) }) != true {
                self.tables[name] = nil
                self.isUnsaved = true
            }
            for exposedSocket in self.all {
                await self.endUnlessAsBefore(exposedSocket, wanted[exposedSocket.name]?.order)
            }
            for (order, place) in orders { await self.takeUp(order, place) }
            self.isForgotten = false
            self.save()
        }
    }

    private func endUnlessAsBefore(_ exposedSocket: ExposedSocket, _ order: ExposedSocket.Order?) async {
        let isBound = await isStillBound(exposedSocket)
        if exposedSocket.isOfCall {
            if !isBound { await end(exposedSocket, .accountChanged) }
        } else if !isBound || order != exposedSocket.order {
            await end(exposedSocket, .configuration)
        }
    }

    private func takeUp(_ order: ExposedSocket.Order, _ place: String) async {
        let fresh = made(of: order, .configuration(place))
        guard !namesOfCalls.contains(order.name) else {
            let clash = ClosedSocket(fresh, .nameTaken)
            note(clash)
            return record(.failed(name: order.name, reason: clash.detail))
        }
        // The lines above it may have changed.
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
        case nil where !exposedSocket.hasExpired(at: clock.boot()): await tryToBegin(await bound(exposedSocket))
        case nil:
            // Its time was over while the daemon was away.
            tables[order.name]?.ending = .expired
            isUnsaved = true
            note(ClosedSocket(exposedSocket, .expired))
            record(.closed(exposedSocket, .expired))
        default: note(ClosedSocket(exposedSocket, .expired))
        }
    }
}
