// The rule: the mask is chosen by the standard's four complaints (section 7.8.3), so that no data looks like a finder,
// a blot or an empty place.

extension QRCodeGrid {
    /// How hard the symbol is to read.
    var penalty: Int {
        var sum = balance + blots
        for line in 0..<size {
            sum += QRCodeGrid.lines((0..<size).map { isDark[line * size + $0] })
            sum += QRCodeGrid.lines((0..<size).map { isDark[$0 * size + line] })
        }
        return sum
    }

    /// A row or a column: 3 for five equal modules in a line, 1 for each more; 40 for what looks like a finder with
    /// four light modules on a side, those of the border among them.
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

    /// 3 for each square of four equal modules; they may overlap.
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

    /// 10 for each full 5 percent that the dark modules are away from half of all.
    var balance: Int {
        let total = size * size
        let dark = isDark.count { $0 }
        return abs(dark * 20 - total * 10) / total * 10
    }
}
