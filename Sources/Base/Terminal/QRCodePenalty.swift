// The mask is chosen by the four penalties of the standard (section 7.8.3), so that data does not look like a finder or
// form large areas.

extension QRCodeGrid {
    /// The sum of the penalties; the lower, the easier to read.
    var penalty: Int {
        var sum = balance + blots
        for line in 0..<size {
            sum += QRCodeGrid.lines((0..<size).map { isDark[line * size + $0] })
            sum += QRCodeGrid.lines((0..<size).map { isDark[$0 * size + line] })
        }
        return sum
    }

    /// The penalty of a row or a column: 3 for five equal modules in a row and 1 for each further one; 40 for a pattern
    /// like a finder's with four light modules on one side, where the border counts as light.
    static func lines(_ modules: [Bool]) -> Int {
        var sum = 0
        var length = 0
        for (index, isDark) in modules.enumerated() {
            length = index > 0 && modules[index - 1] == isDark ? length + 1 : 1
            if length == 5 { sum += 3 } else if length > 5 { sum += 1 }
        }
        // The last eleven modules, as bits.
        var window = 0
        for isDark in modules + Array(repeating: false, count: QRCode.border) {
            window = (window << 1 | (isDark ? 1 : 0)) & 0x7FF
            if window == 0b101_1101_0000 || window == 0b000_0101_1101 { sum += 40 }
        }
        return sum
    }

    /// The penalty for areas: 3 for each square of 2 x 2 equal modules; squares may overlap.
    var blots: Int {
        var sum = 0
        for place in 0..<size * (size - 1) where place % size < size - 1 {
            let isDark = isDark[place]
            if self.isDark[place + 1] == isDark, self.isDark[place + size] == isDark,
                self.isDark[place + size + 1] == isDark
            {
                sum += 3
            }
        }
        return sum
    }

    /// The penalty for imbalance: 10 for each full 5 percent by which the share of dark modules differs from one half.
    var balance: Int {
        let total = size * size
        let dark = isDark.count { $0 }
        return abs(dark * 20 - total * 10) / total * 10
    }
}
