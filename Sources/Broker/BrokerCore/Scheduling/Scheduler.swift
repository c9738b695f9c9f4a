/// What is to be done and when: one instant for each key. A binary heap that knows every key's place, so that moving or
/// removing one among n costs O(log n).
struct Scheduler<Key: Hashable & Sendable>: Sendable {
    private struct Item {
        var key: Key
        var at: BootInstant
    }
    private var heap: [Item] = []
    private var places: [Key: Int] = [:]

    var count: Int { heap.count }

    /// The earliest instant.
    var next: BootInstant? { heap.first?.at }

    /// When a key is due.
    subscript(key: Key) -> BootInstant? { places[key].map { heap[$0].at } }

    /// Puts a key at an instant, wherever it was before.
    mutating func set(_ key: Key, at instant: BootInstant) {
        if let place = places[key] {
            heap[place].at = instant
            settle(place)
        } else {
            heap.append(Item(key: key, at: instant))
            places[key] = heap.count - 1
            settle(heap.count - 1)
        }
    }

    mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        places[last.key] = place
        settle(place)
    }

    /// Takes out the earliest key if it is due.
    mutating func popDue(at now: BootInstant) -> Key? {
        guard let first = heap.first, first.at <= now else { return nil }
        remove(first.key)
        return first.key
    }

    private mutating func settle(_ start: Int) {
        var place = start
        while place > 0, heap[place].at < heap[(place - 1) / 2].at {
            swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        while true {
            let left = 2 * place + 1
            guard left < heap.count else { return }
            let child = left + 1 < heap.count && heap[left + 1].at < heap[left].at ? left + 1 : left
            guard heap[child].at < heap[place].at else { return }
            swap(place, child)
            place = child
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        heap.swapAt(one, other)
        places[heap[one].key] = one
        places[heap[other].key] = other
    }
}
