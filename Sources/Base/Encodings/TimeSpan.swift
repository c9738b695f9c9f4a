/// Durations as users write them.
public enum TimeSpan {
    /// The seconds of `90s`, `15m`, `8h`, `7d` or `2w`; nil for anything else.
    public static func seconds(of text: String) -> Int? {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
        guard let unit = text.last.flatMap({ units[$0] }), text.utf8.dropLast().allSatisfy({ 0x30...0x39 ~= $0 }),
            let count = Int(text.dropLast())
        else { return nil }
        let (seconds, isTooMuch) = count.multipliedReportingOverflow(by: unit)
        return isTooMuch ? nil : seconds
    }
}
