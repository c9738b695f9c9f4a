/// The head of an HTTP answer, without what follows it.
public struct AnswerHead: Sendable {
    /// 0 if there is none.
    public let status: Int
    /// Names in lower case.
    public let fields: [String: String]

    public init(_ text: String) {
        let lines = text.split(separator: "\r\n")
        status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        self.fields = fields
    }
}
