/// The faults that are on.
struct Faults {
    private var all: [Fault] = []

    var count: Int { all.count }

    mutating func add(_ faults: [Fault]) { all += faults }

    /// Takes the faults of a request: at most one that holds it, and at most one that replaces its response.
    mutating func take(for request: SandboxRequest, _ endpoint: Endpoint) -> (hold: Fault?, answer: Fault?) {
        (take(request, endpoint) { $0.isHold }, take(request, endpoint) { !$0.isHold })
    }

    private mutating func take(
        _ request: SandboxRequest, _ endpoint: Endpoint, where isWanted: (Fault) -> Bool
    ) -> Fault? {
        guard let index = all.firstIndex(where: { isWanted($0) && $0.concerns(request, endpoint) }) else {
            return nil
        }
        let fault = all[index]
        if let remaining = fault.remaining {
            all[index].remaining = remaining - 1
            if remaining <= 1 { all.remove(at: index) }
        }
        return fault
    }
}
