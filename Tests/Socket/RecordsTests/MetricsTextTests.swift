import Testing

@testable import Records

@Suite struct `The text of the metrics` {
    private static func text(of metrics: Metrics) -> String {
        MetricsText.text(
            of: metrics, accounts: [("authenticated", 2), ("loading", 0)], pendingRevocations: [("work", 3)],
            isVaultLocked: true, uptime: 7, audit: AuditLog.Health(failures: 1, lost: 2, waiting: 3))
    }

    private static func full() -> Metrics {
        let metrics = Metrics()
        metrics.count(.signInsStarted, "work", method: "browser")
        metrics.count(.signInsStarted, "work", method: "browser")
        metrics.count(.signInsStarted, "b\"a\\c\nk", method: "device")
        metrics.signInCompleted("work", method: "browser", duration: .milliseconds(4_250))
        metrics.signInCompleted("work", method: "browser", duration: .seconds(5))
        metrics.signInCompleted("work", method: "browser", duration: .seconds(4_000))
        metrics.count(.signInsCancelled, "work", method: "browser")
        metrics.count(.signInsFailed, "work", method: "browser", code: "access_denied")
        metrics.count(.refreshesAttempted, "work")
        metrics.count(.refreshesFailed, "work", code: "provider_unreachable")
        for _ in 0..<5 { metrics.issuedTokens(of: "work").add() }
        return metrics
    }

    @Test(arguments: [Metrics(), full()]) func `is what Prometheus reads`(metrics: Metrics) throws {
        let families = try PrometheusText.parse(Self.text(of: metrics))
        for family in families {
            #expect(family.name.hasPrefix("ringback_"))
            #expect((family.type == "counter") == family.name.hasSuffix("_total"))
            for sample in family.samples {
                #expect(Set(sample.labels.keys).isSubset(of: ["account", "method", "code", "le"]))
            }
        }
        #expect(Set(families.map(\.name)).count == families.count)
    }

    @Test func `says what was counted`() throws {
        let families = try PrometheusText.parse(Self.text(of: Self.full()))
        func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
            families.flatMap(\.samples).first { $0.name == "ringback_\(name)" && $0.labels == labels }?.value
        }
        let work = ["account": "work", "method": "browser"]
        #expect(value("sign_ins_started_total", work) == 2)
        #expect(value("sign_ins_started_total", ["account": "b\"a\\c\nk", "method": "device"]) == 1)
        #expect(value("sign_ins_completed_total", work) == 3)
        #expect(value("sign_ins_cancelled_total", work) == 1)
        #expect(value("sign_ins_failed_total", work.merging(["code": "access_denied"]) { $1 }) == 1)
        #expect(value("sign_in_duration_seconds_bucket", work.merging(["le": "2"]) { $1 }) == 0)
        #expect(value("sign_in_duration_seconds_bucket", work.merging(["le": "5"]) { $1 }) == 2)
        #expect(value("sign_in_duration_seconds_bucket", work.merging(["le": "600"]) { $1 }) == 2)
        #expect(value("sign_in_duration_seconds_bucket", work.merging(["le": "+Inf"]) { $1 }) == 3)
        #expect(value("sign_in_duration_seconds_count", work) == 3)
        #expect(value("sign_in_duration_seconds_sum", work) == 4_009.25)
        #expect(value("refreshes_attempted_total", ["account": "work"]) == 1)
        #expect(value("refreshes_failed_total", ["account": "work", "code": "provider_unreachable"]) == 1)
        #expect(value("issued_tokens_total", ["account": "work"]) == 5)
        #expect(value("accounts_authenticated") == 2 && value("accounts_loading") == 0)
        #expect(value("pending_revocations", ["account": "work"]) == 3)
        #expect(value("vault_locked") == 1)
        #expect(value("audit_write_failures_total") == 1 && value("audit_entries_lost_total") == 2)
        #expect(value("uptime_seconds") == 7)
    }

    @Test(arguments: [
        "x 1\n", "# TYPE x counter\nx 1\n", "# HELP x h\nx 1\n", "# HELP x h\n# TYPE x counter\nx 1",
        "# HELP x h\n# TYPE x counter\nx{a=b} 1\n", "# HELP x h\n# TYPE x counter\nx{a=\"b\"}\n",
        "# HELP x h\n# TYPE x counter\nx{a=\"b\\q\"} 1\n", "# HELP x h\n# TYPE x counter\nx 1\nx 1\n",
        "# HELP x h\n# TYPE x histogram\nx_bucket{le=\"1\"} 2\nx_bucket{le=\"+Inf\"} 1\nx_sum 1\nx_count 1\n",
        "# HELP x h\n# TYPE x counter\ny 1\n", "# HELP x h\n# TYPE x counter\nx one\n",
    ]) func `is read by a reader that finds mistakes`(text: String) {
        #expect(throws: PrometheusText.Mistake.self) { try PrometheusText.parse(text) }
    }
}

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
