/// The uses that are in the audit log already, so that repetitions are counted instead. Used on one queue only.
struct RecordedUses: Sendable {
    private struct Entry: Hashable {
        let program: CallerIdentity.Program
        let use: AuditUse
    }

    private var told: Set<Entry> = []
    private let maxSize: Int

    /// - Parameter maxSize: how many uses are remembered. Beyond it those of ended processes are forgotten, and if that
    ///   is not enough, all. A forgotten use is written again as if it were the first; nothing is lost.
    init(maxSize: Int = 4_096) {
        self.maxSize = maxSize
    }

    /// True the first time for this program and use.
    mutating func insert(_ use: AuditUse, of program: CallerIdentity.Program) -> Bool {
        if told.count >= maxSize { forget() }
        return told.insert(Entry(program: program, use: use)).inserted
    }

    private mutating func forget() {
        var alive: [Int32: UInt64?] = [:]
        for entry in told where alive[entry.program.pid] == nil {
            alive[entry.program.pid] = ProcessFacts.startTime(of: entry.program.pid)
        }
        told = told.filter { $0.program.startTime != nil && alive[$0.program.pid] == $0.program.startTime }
        if told.count > maxSize / 2 { told = [] }
    }
}
