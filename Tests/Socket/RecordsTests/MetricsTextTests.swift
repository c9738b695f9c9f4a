import Testing

@testable import Records

@Suite struct `The text of the metrics` {
    private static let present = MetricsText.Present(
        accounts: [("authenticated", 2), ("loading", 0)], pendingRevocations: [("work", 3)],
        isVaultLocked: true, uptime: 7, audit: AuditLog.Health(failures: 1, lost: 2, waiting: 3))

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
        let families = try PrometheusText.parse(MetricsText.text(of: metrics, Self.present))
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
        let families = try PrometheusText.parse(MetricsText.text(of: Self.full(), Self.present))
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
