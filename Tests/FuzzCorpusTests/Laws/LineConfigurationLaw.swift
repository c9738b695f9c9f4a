import Adapters

/// A configuration of lines with one added and removed. The first line names the tool, the rest is the file.
enum LineConfigurationLaw {
    private static let place = "law.example.org"

    static func check(_ bytes: [UInt8]) throws {
        let (tool, text) = bytes.headLineAndRest
        let formats: [String: LineFormat] = ["bazel": .bazel, "terraform": .terraform, "pnpm": .pnpm]
        guard let format = formats[tool], var configuration = LineConfiguration(reading: text, as: format),
            let line = format.line(for: place, running: "/" + format.program(for: place))
        else { return }
        let former = configuration.settings
        configuration.add(line)
        let added = configuration.settings
        try hold("only the line is added", Array(added.dropLast()) == former && added.count == former.count + 1)
        try hold("it is Ringback's", added.last.map(format.isOurs) == true)
        configuration.remove(line)
        try hold("only the line is removed", configuration.bytes == text)
    }
}
