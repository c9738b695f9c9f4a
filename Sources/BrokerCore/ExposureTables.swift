public import SessionVault

/// What is exposed without anybody asking now: what calls had made before the last end of the daemon, and what stands in
/// the configuration. The former come first: a table must not take a socket's name from under who is connected to it.
extension ExposureBook {
    /// The names that calls have taken, as the state directory says without the daemon; none where it cannot be told.
    public static func namesOfCalls(in file: StateFile, by clock: BrokerClock = .system) -> Set<String> {
        guard let bytes = try? file.read(atMost: ExposureRecord.maxSize),
            let record = ExposureRecord(reading: bytes, by: clock)
        else { return [] }
        return Set(record.exposures.filter { !$0.hasExpired(at: clock.boot()) }.map(\.name))
    }

    /// Opens again what calls had made before the last end of the daemon, and remembers what became of the
    /// configuration's. To be called once, before ``configure(_:)``.
    public func restore() async {
        await exclusively {
            let record = self.remembered()
            self.tables = record.tables
            for exposure in record.exposures where self.open[exposure.name] == nil { await self.bringBack(exposure) }
            self.save()
        }
    }

    private func remembered() -> ExposureRecord {
        do throws(VaultError) {
            guard let bytes = try file?.read(atMost: ExposureRecord.maxSize) else { return ExposureRecord() }
            if let known = ExposureRecord(reading: bytes, by: clock) { return known }
            let place = file?.setAside()
            record(.damaged(reason: "It makes no sense\(place.map { ", and is now \($0)" } ?? "")."))
        } catch {
            record(.damaged(reason: ExposureBook.words(of: BrokerError(error))))
        }
        return ExposureRecord()
    }

    private func bringBack(_ remembered: Exposure) async {
        var exposure = remembered
        guard !exposure.hasExpired(at: clock.boot()) else {
            isUnsaved = true
            return record(.closed(exposure, .expired))
        }
        if exposure.bindings.isEmpty { exposure = await bound(exposure) }
        guard await isStillBound(exposure) else {
            isUnsaved = true
            note(ClosedExposure(exposure, .accountChanged))
            return record(.closed(exposure, .accountChanged))
        }
        await tryToBegin(exposure)
    }

    private func tryToBegin(_ exposure: Exposure) async {
        do throws(BrokerError) {
            try await begin(exposure)
        } catch {
            let reason = ExposureBook.words(of: error)
            note(ClosedExposure(exposure, failed: reason))
            record(.failed(name: exposure.name, reason: reason))
        }
    }

    // MARK: Bindings

    /// With what its accounts are bound to now. One that is not there is bound to nothing that could be.
    private func bound(_ exposure: Exposure) async -> Exposure {
        var exposure = exposure
        for name in exposure.accounts {
            exposure.bindings[name] = await binding(name) ?? SessionBinding(provider: "", clientID: "")
        }
        return exposure
    }

    /// False if one of its accounts is another one under the same name. One that is not configured now may come back.
    private func isStillBound(_ exposure: Exposure) async -> Bool {
        for name in exposure.accounts {
            guard let now = await binding(name) else { continue }
            guard exposure.isBound(name, to: now) else { return false }
        }
        return true
    }

    // MARK: The configuration

    /// Takes over what the configuration says, each with its place there. What did not change keeps its connections and
    /// its first end; what a call made keeps its name. To be called after the accounts were replaced: who shows one that
    /// is another one now is ended.
    public func configure(_ orders: [(order: Exposure.Order, place: String)]) async {
        await exclusively {
            let wanted = Dictionary(orders.map { ($0.order.name, $0) }) { first, _ in first }
            self.places = wanted.mapValues(\.place)
            self.forgetClosed(nil, isOfCall: false)
            for (name, table) in self.tables where wanted[name].map({ table.says($0.order) }) != true {
                self.tables[name] = nil
                self.isUnsaved = true
            }
            for exposure in self.all { await self.endUnlessAsBefore(exposure, wanted[exposure.name]?.order) }
            for (order, place) in orders { await self.takeUp(order, place) }
            self.save()
        }
    }

    private func endUnlessAsBefore(_ exposure: Exposure, _ order: Exposure.Order?) async {
        let isBound = await isStillBound(exposure)
        if exposure.isOfCall {
            if !isBound { await end(exposure, .accountChanged) }
        } else if !isBound || order != exposure.order {
            await end(exposure, .configuration)
        }
    }

    private func takeUp(_ order: Exposure.Order, _ place: String) async {
        let fresh = made(of: order, .configuration(place))
        guard !namesOfCalls.contains(order.name) else {
            let clash = ClosedExposure(fresh, .nameTaken)
            note(clash)
            return record(.failed(name: order.name, reason: clash.detail))
        }
        // The lines above it may have changed.
        guard open[order.name] == nil else {
            open[order.name]?.origin = .configuration(place)
            return
        }
        let table = tables[order.name] ?? ExposureTable(order, by: clock)
        if tables.updateValue(table, forKey: order.name) == nil, table.isKept { isUnsaved = true }
        let exposure = Exposure(
            id: fresh.id, order: order, origin: fresh.origin, createdAt: fresh.createdAt, expiry: table.expiry)
        switch table.ending {
        case .revoked: note(ClosedExposure(exposure, .revoked))
        case nil where !exposure.hasExpired(at: clock.boot()): await tryToBegin(await bound(exposure))
        case nil:
            // Its time was over while the daemon was away.
            tables[order.name]?.ending = .expired
            isUnsaved = true
            note(ClosedExposure(exposure, .expired))
            record(.closed(exposure, .expired))
        default: note(ClosedExposure(exposure, .expired))
        }
    }
}
