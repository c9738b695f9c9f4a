internal import Secrets
internal import SessionVault

/// What a row says of other hosts' requests.
extension SharedRow {
    /// How long the outcome of another host's attempt is waited for; nil if there is none to wait for. An attempt of
    /// this host is of an earlier life of it, which has lost the response.
    ///
    /// - Parameters:
    ///   - id: the attempt that is being made.
    ///   - edits: of the head: so many versions before it had the same tokens.
    func wait(for id: LeaseID, of host: String, edits: Int64, accessTokenLeft: Duration?) -> Duration? {
        let longest = SharedVault.attemptWait
        let waits = openAttempts.filter { $0.id != id && $0.host != host && $0.parentVersion >= version - edits }
            .map { min(accessTokenLeft ?? longest, longest - $0.age) }
        return waits.max().flatMap { $0 > .zero ? $0 : nil }
    }

    /// The candidates that this host has not been given: those that came after the head's tokens, and the others.
    ///
    /// - Throws: `unreachable` if one cannot be opened.
    func candidates(
        besides entry: SpoolEntry?, opened sealing: RowSealing
    ) throws(VaultError) -> (newer: [RowContent], older: [RowContent]) {
        let edits = Int64(entry?.content.edits ?? 0)
        var known = Set(entry.map { [$0.content.name] + $0.content.ancestors } ?? [])
        var (newer, older): ([RowContent], [RowContent]) = ([], [])
        for candidate in candidates {
            guard let content = try sealing.open(candidate.sealed, as: key, version: candidate.parentVersion + 1),
                known.insert(content.name).inserted
            else { continue }
            if candidate.parentVersion >= version - edits { newer.append(content) } else { older.append(content) }
        }
        return (newer, older)
    }

    /// The contents with which a session went on after this one.
    func received(after former: RowContent, opened sealing: RowSealing) -> [RowContent] {
        let head = (try? sealing.open(sealed, as: key, version: version)) ?? nil
        let rest = (try? candidates(besides: nil, opened: sealing)).map { $0.newer + $0.older } ?? []
        return ([head].compactMap { $0 } + rest).filter { $0.continues(former) }
    }

    /// Whether the content is among the candidates.
    func has(_ content: RowContent, opened sealing: RowSealing) -> Bool {
        candidates.contains { candidate in
            let found = try? sealing.open(candidate.sealed, as: key, version: candidate.parentVersion + 1)
            return found?.name == content.name
        }
    }
}

extension SlotState {
    /// Nil unless every token of the row was tried: if another host has changed it, has received what was not tried, or may
    /// have.
    func proofOfEnd(_ row: SharedRow?, of host: String, opened sealing: RowSealing) -> EndProof? {
        // A row that is gone had what other hosts received. It is put back first.
        guard let row else { return rowVersion == 0 ? EndProof() : nil }
        guard row.version == rowVersion else { return nil }
        let tried = offered.union(entry.map { [$0.content.name] + $0.content.ancestors } ?? [])
        for candidate in row.candidates {
            let content = try? sealing.open(candidate.sealed, as: key, version: candidate.parentVersion + 1)
            if let name = content?.name, !tried.contains(name) { return nil }
        }
        let unheard = row.openAttempts.filter { $0.id != attempt?.id }
        guard !unheard.contains(where: { $0.host != host && $0.age < SharedVault.attemptDoubt }) else { return nil }
        // What began before the tokens of the head came explains nothing.
        let last = unheard.filter { $0.parentVersion >= row.version - edits }.min { $0.age < $1.age }
        return EndProof(unheard: last.map { EndProof.UnheardRequest(host: $0.host, age: $0.age) })
    }
}
