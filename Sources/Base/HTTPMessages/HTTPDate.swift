internal import Encodings

/// The dates of HTTP fields (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT` (IMF-fixdate). The two obsolete
/// formats are only read: `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
public enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Unix seconds. Nil for another format and for values out of range.
    public static func seconds(of text: String) -> Int? {
        guard let words = words(of: text), let day = number(words.day), words.day.utf8.count <= 2,
            let month = months.firstIndex(of: String(words.month)), words.year.utf8.count == 4,
            let year = number(words.year)
        else { return nil }
        let parts = words.time.split(separator: ":", omittingEmptySubsequences: false)
        let time = parts.compactMap { $0.utf8.count == 2 ? number($0) : nil }
        guard parts.count == 3, time.count == 3, time[0] < 24, time[1] < 60, time[2] < 61, day >= 1,
            day <= Calendar.length(ofMonth: month + 1, year), year >= 1970
        else { return nil }
        return Calendar.day(year, month + 1, day) * 86_400 + time[0] * 3_600 + time[1] * 60 + time[2]
    }

    private static func words(of text: String) -> (day: Substring, month: Substring, year: Substring, time: Substring)?
    {
        let words = text.split(separator: " ")
        if words.count == 6, words[0].hasSuffix(","), words[5] == "GMT" {
            return (words[1], words[2], words[3], words[4])
        }
        if words.count == 5, words[0].utf8.count == 3 { return (words[2], words[1], words[4], words[3]) }
        guard words.count == 4, words[0].hasSuffix(","), words[3] == "GMT" else { return nil }
        let date = words[1].split(separator: "-", omittingEmptySubsequences: false)
        guard date.count == 3, date[2].utf8.count == 2, let year = number(date[2]) else { return nil }
        return (date[0], date[1], "\(year < 70 ? 20 : 19)\(date[2])", words[2])
    }

    /// Formats Unix seconds as IMF-fixdate. Negative values become 1970-01-01.
    public static func text(of seconds: Int) -> String {
        let (day, time) = (max(0, seconds) / 86_400, max(0, seconds) % 86_400)
        let (year, month, number) = Calendar.date(ofDay: day)
        let date = "\(two(number)) \(months[month - 1]) \(year)"
        // 1970-01-01 was a Thursday.
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][day % 7]
        return "\(weekday), \(date) \(two(time / 3_600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }

    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
    }
}
