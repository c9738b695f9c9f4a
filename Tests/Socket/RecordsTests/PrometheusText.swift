/// A strict reader of the exposition format 0.0.4, as far as counters, gauges and histograms go.
enum PrometheusText {
    struct Mistake: Error, CustomStringConvertible {
        let description: String
    }
    struct Sample {
        let name: String
        let labels: [String: String]
        let value: Double
    }
    struct Family {
        let name: String
        var type = ""
        var samples: [Sample] = []
    }

    static func parse(_ text: String) throws -> [Family] {
        guard text.last == "\n" else { throw Mistake(description: "no newline at the end") }
        var families: [Family] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            let words = line.split(separator: " ", maxSplits: 3).map(String.init)
            if line.hasPrefix("# HELP ") {
                guard words.count == 4, families.last?.type != "" else { throw Mistake(description: "\(line)") }
                families.append(Family(name: words[2]))
            } else if line.hasPrefix("# TYPE ") {
                guard words.count == 4, words[2] == families.last?.name, families.last?.type == "",
                    ["counter", "gauge", "histogram"].contains(words[3])
                else { throw Mistake(description: "\(line)") }
                families[families.count - 1].type = words[3]
            } else {
                try add(try sample(line), to: &families)
            }
        }
        for family in families where family.type == "histogram" { try checkHistogram(family) }
        return families
    }

    private static func add(_ sample: Sample, to families: inout [Family]) throws {
        guard let family = families.last, !family.type.isEmpty else { throw Mistake(description: "no family") }
        let suffixes = family.type == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
        guard suffixes.contains(where: { sample.name == family.name + $0 }) else {
            throw Mistake(description: "\(sample.name) in \(family.name)")
        }
        guard !family.samples.contains(where: { $0.name == sample.name && $0.labels == sample.labels }) else {
            throw Mistake(description: "\(sample.name) twice")
        }
        families[families.count - 1].samples.append(sample)
    }

    private static func sample(_ line: Substring) throws -> Sample {
        let name = line.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == ":") }
        guard let first = name.first, !first.isNumber else { throw Mistake(description: "no name: \(line)") }
        var rest = line.dropFirst(name.count)
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest.removeFirst()
            while rest.first != "}" {
                let (key, value) = try label(&rest)
                guard labels.updateValue(value, forKey: key) == nil else { throw Mistake(description: "\(key) twice") }
                guard rest.first == "," || rest.first == "}" else { throw Mistake(description: "\(line)") }
                if rest.first == "," { rest.removeFirst() }
            }
            rest.removeFirst()
        }
        guard rest.first == " ", let value = Double(rest.dropFirst()) else { throw Mistake(description: "\(line)") }
        return Sample(name: String(name), labels: labels, value: value)
    }

    private static func label(_ rest: inout Substring) throws -> (String, String) {
        let key = rest.prefix { $0.isASCII && ($0.isLetter || $0 == "_") }
        rest = rest.dropFirst(key.count)
        guard !key.isEmpty, rest.hasPrefix("=\"") else { throw Mistake(description: "label: \(rest)") }
        rest = rest.dropFirst(2)
        var value = ""
        while let character = rest.popFirst(), character != "\"" {
            guard character == "\\" else {
                value.append(character)
                continue
            }
            switch rest.popFirst() {
            case "\\": value.append("\\")
            case "\"": value.append("\"")
            case "n": value.append("\n")
            default: throw Mistake(description: "escape")
            }
        }
        return (String(key), value)
    }

    private static func checkHistogram(_ family: Family) throws {
        var groups: [[String: String]: [(bound: Double, count: Double)]] = [:]
        for sample in family.samples where sample.name.hasSuffix("_bucket") {
            var labels = sample.labels
            guard let text = labels.removeValue(forKey: "le"), let bound = Double(text.replacing("+Inf", with: "inf"))
            else { throw Mistake(description: "le") }
            groups[labels, default: []].append((bound, sample.value))
        }
        for (labels, buckets) in groups {
            let count = family.samples.first { $0.name.hasSuffix("_count") && $0.labels == labels }?.value
            let isRising = zip(buckets, buckets.dropFirst()).allSatisfy { $0.bound < $1.bound && $0.count <= $1.count }
            guard isRising, buckets.last?.bound == .infinity, buckets.last?.count == count,
                family.samples.contains(where: { $0.name.hasSuffix("_sum") && $0.labels == labels })
            else { throw Mistake(description: "buckets of \(family.name)") }
        }
    }
}
