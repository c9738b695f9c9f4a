internal import BrokerCore
internal import Cryptography
internal import Synchronization

extension FileKeeper {
    /// Keeps the files until it is cancelled.
    public func run() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let (due, pause, signal) = takeDue()
                for path in due { group.addTask { await self.renew(path) } }
                await save()
                _ = await signal.wait(atMost: pause)
            }
            group.cancelAll()
        }
    }

    private func takeDue() -> (due: [String], pause: Duration, Promise<Void>) {
        let now = clock.bootInstant
        return state.withLock { state in
            if state.signal.value != nil { state.signal = Promise() }
            guard !state.isEnding else { return ([], FileState.interval, state.signal) }
            var due: [String] = []
            var next = now + FileState.interval
            for (path, file) in state.files where !file.isAsking {
                if file.due <= now {
                    due.append(path)
                    state.files[path]?.isAsking = true
                } else {
                    next = min(next, file.due)
                }
            }
            return (due, next - now, state.signal)
        }
    }

    /// Writes the record without the files that were removed.
    func save() async {
        let entries = state.withLock { $0.files.filter { !$0.value.isAsking }.mapValues { $0.entry(by: clock) } }
        // If the write fails, the record still names removed files, which does no harm.
        try? await record.set(entries)
    }

    private func renew(_ path: String) async {
        guard let asked = state.withLock({ $0.files[path] }) else { return }
        let file = asked.file
        var change: @Sendable (inout FileState) -> Void
        do throws(BrokerError) {
            let issued = try await broker.session(file.account, file.query)
            change = await keep(issued, asked)
        } catch {
            change = await failure(error, of: file)
        }
        finish(path, asked, change)
    }

    private func finish(_ path: String, _ asked: FileState, _ change: (inout FileState) -> Void) {
        let now = clock.bootInstant
        let (signal, news) = state.withLock { state in
            guard let former = state.files[path] else { return (state.signal, [News]()) }
            var file = former
            file.isAsking = false
            // If the session was closed or replaced since the token was asked for, the result is ignored.
            if file.generation == asked.generation, !state.isEnding { change(&file) }
            if file.wakes != asked.wakes { file.due = now }
            state.files[path] = file
            return (state.signal, FileKeeper.news(former, file))
        }
        signal.fulfil(())
        news.forEach(tell)
    }

    /// Writes the token, unless the file contains it already. Returns the change to apply to the file's state.
    private func keep(_ issued: IssuedToken, _ asked: FileState) async -> @Sendable (inout FileState) -> Void {
        let file = asked.file
        let (now, wall) = (clock.bootInstant, clock.wallInstant)
        let began = asked.beganAt ?? wall
        let left = file.lifetime.map { began + $0 - wall }
        if let left, left <= .zero {
            return { state in
                state.beganAt = began
                state.remove(becoming: .ended, at: now)
            }
        }
        let ends = [issued.token.expiry, left.map { Deadline(in: $0, by: clock) }].compactMap(\.self)
        let expiry = ends.min { $0.boot < $1.boot }
        let next = FileEntry(
            digests: asked.known, expiresAt: expiry?.wall(by: clock).seconds,
            beganAt: file.lifetime == nil ? nil : began.seconds)
        do throws(FileReason) {
            let digest = try await write(issued, asked, next)
            return { state in
                let isNew = state.known != [digest]
                state.known = [digest]
                (state.isWritten, state.expiry, state.beganAt) = (true, expiry, file.lifetime == nil ? nil : began)
                (state.state, state.detail) = (.kept, nil)
                state.plan(issued.token, isNew: isNew, at: now)
                if let expiry { state.due = min(state.due, max(expiry.boot, now + .seconds(1))) }
            }
        } catch {
            return { state in state.fail(.file(error), at: now) }
        }
    }

    /// Writes the token to the file. Returns the digest of the content.
    ///
    /// - Parameter entry: the file's entry for the record; the new content's digest is added.
    private func write(
        _ issued: IssuedToken, _ asked: FileState, _ entry: FileEntry
    ) async throws(FileReason) -> [UInt8] {
        let file = asked.file
        let content = try file.content(issued, expiresAt: entry.expiresAt.map { WallInstant(seconds: $0) })
        let digest = Digest.sha256(content)
        let place = try FilePlace(file.path)
        guard file.isDiskAllowed || place.isInMemory else {
            throw .onDisk(path: file.path)
        }
        var entry = entry
        entry.digests.insert(digest)
        switch place.standing(entry.digests) {
        case .ours(digest): return digest
        case .foreign(let reason): throw .left(reason)
        case .ours, .nothing: break
        }
        // Write the record before the file: after a crash it then has the digest of whatever we left at the path.
        try await record.set([file.path: entry])
        try place.prepare(content)
        let result = state.withLock { state -> Result<Bool, FileReason> in
            guard !state.isEnding, let current = state.files[file.path], current.generation == asked.generation else {
                place.discard()
                return .success(false)
            }
            do throws(FileReason) {
                try place.publish(over: entry.digests)
                state.files[file.path]?.known = entry.digests
                state.files[file.path]?.isWritten = true
                return .success(true)
            } catch {
                return .failure(error)
            }
        }
        if try result.get() { tell(.written(file)) }
        return digest
    }

    /// Returns the change of the file's state for an error from the broker.
    private func failure(_ error: BrokerError, of file: KeptFile) async -> @Sendable (inout FileState) -> Void {
        let now = clock.bootInstant
        switch error {
        case .cancelled: return { state in state.due = now + FileState.interval }
        case .vaultLocked: return { state in state.remove(becoming: .locked, at: now) }
        case .signInRequired, .sessionExpired, .sessionRanOut, .accountNotFound:
            let isSignedIn = (try? await broker.account(file.account).subject) != nil
            guard isSignedIn, file.format == .idToken else {
                return { state in state.remove(becoming: .signedOut, at: now) }
            }
            return { state in state.fail(.file(.noIDToken(file.account)), at: now) }
        case .methodUnsupported(let reason, _), .conflict(let reason, _), .misconfigured(let reason),
            .vaultFailed(let reason), .vaultUnreachable(let reason, _):
            return { state in state.fail(reason, at: now) }
        default:
            return { state in state.fail(.file(.notRenewable(file.account)), at: now) }
        }
    }
}
