/// Which uses the audit log has told of, so that a repetition is known as one. Used by one queue.
struct ToldUses: Sendable {
    private struct Entry: Hashable {
        let program: CallerIdentity.Program
        let use: AuditUse
    }

    private var told: Set<Entry> = []
    private let maxSize: Int

    /// - Parameter maxSize: uses that are remembered. Beyond it those of processes that have ended are forgotten, then
    ///   all: a program would be told of as if for the first time, and nothing would be lost.
    init(maxSize: Int = 4_096) {
        self.maxSize = maxSize
    }

    /// True the first time that this program did this.
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
