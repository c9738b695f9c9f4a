public import BrokerCore
internal import Cryptography
internal import RingbackBase
public import SessionVault
internal import Synchronization

/// Keeps the configured files: each has its account's current token as long as there is one. Files are removed in the
/// turn in which a session is closed or the vault is locked. Only the task that asks for a token writes it; files that
/// need the same one share a refresh, as any callers do.
public final class FileKeeper: Sendable {
    public enum News: Sendable {
        case written(KeptFile)
        /// Something is wrong. Reported once, and again when the problem changes.
        case trouble(KeptFile, Reason)
        /// The file was removed because its `ttl` is over.
        case ended(KeptFile)
        case mended(KeptFile)
    }

    struct State {
        var files: [String: FileState] = [:]
        var order: [String] = []
        var isEnding = false
        var signal = Promise<Void>()
    }

    let broker: Broker
    let record: FileRecord
    let clock: BrokerClock
    let tell: @Sendable (News) -> Void
    let state = Mutex(State())

    public init(
        _ broker: Broker, record: StateFile, clock: BrokerClock = .system, tell: @escaping @Sendable (News) -> Void
    ) {
        self.broker = broker
        self.record = FileRecord(record)
        self.clock = clock
        self.tell = tell
    }

    // MARK: Events

    /// Takes a fact of the broker. Called synchronously, before the change becomes visible.
    @Sendable public func note(_ fact: BrokerFact) {
        switch fact {
        case .sessionClosed(let account, _), .sessionEnded(let account, _, _, _):
            change({ $0.account == account }, by: { $0.end(becoming: .signedOut, at: $1) })
        case .vaultLocked: change({ _ in true }, by: { $0.end(becoming: .locked, at: $1) })
        case .sessionOpened(let account, _, _):
            change({ $0.account == account }) { file, now in
                file.generation += 1
                file.beganAt = nil
                file.failures = 0
                file.wake(at: now)
            }
        case .refreshSucceeded(let account): change({ $0.account == account }, by: { $0.wake(at: $1) })
        case .vaultOpened: change({ _ in true }, by: { $0.wake(at: $1) })
        default: return
        }
    }

    private func change(_ isConcerned: (KeptFile) -> Bool, by change: (inout FileState, BootInstant) -> Void) {
        let now = clock.bootInstant
        let (signal, news) = state.withLock { state in
            var news: [News] = []
            for (path, former) in state.files where isConcerned(former.file) {
                var file = former
                change(&file, now)
                state.files[path] = file
                news += FileKeeper.news(former, file)
            }
            return (state.signal, state.isEnding ? [] : news)
        }
        signal.fulfil(())
        news.forEach(tell)
    }

    static func news(_ former: FileState, _ file: FileState) -> [News] {
        if file.state == .ended, former.state != .ended { return [.ended(file.file)] }
        guard former.detail != file.detail else { return [] }
        return [file.detail.map { .trouble(file.file, $0) } ?? .mended(file.file)]
    }

    /// Takes over the configuration's tables, after the accounts. Files that are not configured any more are removed.
    public func configure(_ files: [KeptFile]) {
        let now = clock.bootInstant
        let signal = state.withLock { state in
            let wanted = Dictionary(files.map { ($0.path, $0) }) { first, _ in first }
            for (path, var gone) in state.files where wanted[path] == nil {
                gone.remove(becoming: .ended, at: now)
                state.files[path] = nil
            }
            for file in wanted.values {
                var former = state.files[file.path]
                if former?.file != file { former?.remove(becoming: .waiting, at: now) }
                // The account may have another provider now, so the result of a pending request is not written.
                var next = former?.file == file ? former ?? FileState(file, due: now) : FileState(file, due: now)
                next.known = former?.known ?? []
                next.isWritten = former?.isWritten ?? false
                next.expiry = former?.expiry
                next.isAsking = former?.isAsking ?? false
                next.generation = (former?.generation ?? 0) + 1
                next.wakes = former?.wakes ?? 0
                next.wake(at: now)
                state.files[file.path] = next
            }
            state.order = files.map(\.path)
            return state.signal
        }
        signal.fulfil(())
    }

    /// Finds out what the last daemon left. Files that are configured stay until their sessions have been asked; others are
    /// removed. To be called after ``configure(_:)`` and before anything can be signed out.
    public func begin() async {
        var stale: [String: FileEntry?] = [:]
        for (path, entry) in await record.restore() {
            let place = try? FilePlace(path)
            place?.removeLeftover()
            let isConfigured = state.withLock { state in
                guard var file = state.files[path] else { return false }
                file.known = entry.digests
                file.beganAt = entry.beganAt.map { WallInstant(seconds: $0) }
                file.expiry = entry.expiresAt.map { Deadline(at: WallInstant(seconds: $0), by: clock) }
                if let place, case .ours = place.occupant(entry.digests) { file.isWritten = true }
                state.files[path] = file
                return true
            }
            guard !isConfigured, let place else { continue }
            if (try? place.remove(entry.digests)) != nil { stale.updateValue(nil, forKey: path) }
        }
        try? await record.set(stale)
    }

    /// Removes every file when the daemon ends. Nothing is written after that.
    public func leave() async {
        state.withLock { $0.isEnding = true }
        change({ _ in true }, by: { $0.end(becoming: .waiting, at: $1, keepsBeginning: true) })
        await save()
    }

    public var views: [KeptFileView] {
        let files = state.withLock { state in state.order.compactMap { state.files[$0] } }
        return files.map { file in
            var file = file
            if file.isWritten, let place = try? FilePlace(file.file.path),
                case .foreign(let reason) = place.occupant(file.known)
            {
                (file.state, file.detail) = (.problem, .file(reason))
            }
            return file.view(by: clock)
        }
    }

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
    private func write(
        _ issued: IssuedToken, _ asked: FileState, _ entry: FileEntry
    ) async throws(FileReason) -> [UInt8] {
        let file = asked.file
        let content = try file.content(issued, expiresAt: entry.expiresAt.map { WallInstant(seconds: $0) })
        let digest = Digest.sha256(content)
        let place = try FilePlace(file.path)
        guard file.isDiskAllowed || place.isInMemory else {
            throw FileReason(
                "\(file.path) is not kept: it would be on a disk, not in memory (tmpfs). Choose a path below "
                    + "$XDG_RUNTIME_DIR, or allow it with on_disk = true.")
        }
        var entry = entry
        entry.digests.insert(digest)
        switch place.occupant(entry.digests) {
        case .ours(digest): return digest
        case .foreign(let reason): throw FileReason("\(reason.sentence) It is neither overwritten nor removed.")
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
            let reason = "The session of \(file.account) has no valid ID token, and refreshes bring none."
            return { state in state.fail(.stated(reason), at: now) }
        case .methodUnsupported(let reason, _), .conflict(let reason, _), .misconfigured(let reason),
            .vaultFailed(let reason), .vaultUnreachable(let reason, _):
            return { state in state.fail(reason, at: now) }
        default:
            let reason = "The token of \(file.account) cannot be renewed at present."
            return { state in state.fail(.stated(reason), at: now) }
        }
    }
}
