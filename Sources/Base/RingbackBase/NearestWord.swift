/// The known name that a misspelled name was probably meant to be, for the message "did you mean".
public enum NearestWord {
    /// The name with the smallest edit distance. `most` is the largest allowed distance; nil for a third of the written
    /// name's length, but at least 2.
    public static func find(
        for written: String, among words: some Sequence<String>, changing most: Int? = nil
    ) -> String? {
        // Limits the time. All known names are much shorter.
        guard written.utf8.count <= 64 else { return nil }
        let bound = most ?? max(2, written.utf8.count / 3)
        let distances = words.map { (word: $0, distance: distance(written, $0)) }
        let best = distances.min { ($0.distance, $0.word) < ($1.distance, $1.word) }
        guard let best, best.distance <= bound, best.distance < best.word.utf8.count else { return nil }
        return best.word
    }

    /// Insertions, deletions, replacements and swaps of neighbouring letters (optimal string alignment distance).
    static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.lowercased().utf8)
        let right = Array(right.lowercased().utf8)
        var beforeLast = [Int](repeating: 0, count: right.count + 1)
        var last = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                let isSame = letter == other
                var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (isSame ? 0 : 1))
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
