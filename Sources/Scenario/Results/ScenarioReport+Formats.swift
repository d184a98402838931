package import Codecs
internal import PolicyEngine
internal import SystemIO

extension ScenarioResult {
  /// The name of the case.
  private var title: String { "\(scenario) (\(version))" }

  /// The lines about problems, each with its position.
  fileprivate var problems: [String] {
    var lines: [String] = []
    if case .error(let problem) = outcome {
      lines.append("\(problem.location): \(problem.message)")
      if let hint = problem.hint { lines.append("hint: \(hint)") }
    }
    return lines + failures.map { "\($0.location): \($0.summary)" }
  }

  fileprivate var text: String {
    var reason = ""
    if case .skipped(let why) = outcome { reason = ": \(why)" }
    // Another user may have written the scenario.
    return (["\(status.rawValue)  \(title)\(reason)"] + problems.map { "  " + $0 })
      .map(\.shownOnOneLine).joined(separator: "\n")
  }

  fileprivate var json: JSON {
    var reason: JSON = .null
    if case .skipped(let why) = outcome { reason = .string(why) }
    if case .error(let problem) = outcome { reason = .string(problem.message) }
    return [
      "scenario": .string(scenario), "file": .string(location.file), "version": .string(version),
      "status": .string(status.rawValue), "reason": reason,
      "failures": .array(failures.map(\.json)), "seconds": .double(seconds),
    ]
  }

  fileprivate func tap(_ number: Int) -> String {
    // Each line is a result, so names and messages must not contain line ends. A number sign begins
    // a directive, and version 13 has no escape for it: it is replaced by U+FF03, which looks
    // similar.
    let name = ByteString(title).description.replacing("#", with: "\u{FF03}")
    switch outcome {
    case .passed: return "ok \(number) - \(name)"
    case .skipped(let why): return "ok \(number) - \(name) # SKIP \(ByteString(why))"
    case .failed, .error:
      return (["not ok \(number) - \(name)"] + problems.map { "# \(ByteString($0))" })
        .joined(separator: "\n")
    }
  }

  fileprivate var junit: String {
    let head =
      "    <testcase classname=\"\(XML.text(location.file))\" "
      + "name=\"\(XML.text(title))\" time=\"\(XML.seconds(seconds))\""
    let words = XML.text(problems.joined(separator: "\n"))
    let first = XML.text(problems.first ?? "")
    switch outcome {
    case .passed: return head + "/>"
    case .skipped(let why):
      return head + ">\n      <skipped message=\"\(XML.text(why))\"/>\n    </testcase>"
    case .failed:
      return head + ">\n      <failure message=\"\(first)\">\(words)</failure>\n    </testcase>"
    case .error:
      return head + ">\n      <error message=\"\(first)\">\(words)</error>\n    </testcase>"
    }
  }
}

extension ScenarioFailure {
  fileprivate var json: JSON {
    [
      "line": .integer(Int64(location.line)), "column": .integer(Int64(location.column)),
      "expected": .string(expected), "found": .string(found),
      "paths": .array(paths.map { .string($0.description) }), "count": .integer(Int64(count)),
    ]
  }
}

extension ScenarioReport {
  private var summary: String {
    let parts = ScenarioResult.Status.allCases.compactMap { status in
      let number = count(status)
      return number == 0 ? nil : "\(number) \(status == .error ? "with errors" : status.rawValue)"
    }
    let noun = results.count == 1 ? "case" : "cases"
    return "\(results.count) \(noun): \(parts.joined(separator: ", "))"
  }

  /// The report as text: a line for each case, its problems, and a summary.
  package var text: String { (results.map(\.text) + [summary]).joined(separator: "\n") + "\n" }

  /// The report as JSON.
  package var json: JSON {
    .object(
      [
        JSON.Member("cases", .array(results.map(\.json))), JSON.Member("seconds", .double(seconds)),
      ]
        + ScenarioResult.Status.allCases.map {
          JSON.Member($0.rawValue, .integer(Int64(count($0))))
        })
  }

  /// The report in the Test Anything Protocol, version 13.
  package var tap: String {
    let lines = results.enumerated().map { number, result in result.tap(number + 1) }
    return (["TAP version 13", "1..\(results.count)"] + lines).joined(separator: "\n") + "\n"
  }

  /// The report as JUnit XML, as the schema of Jenkins' xUnit plugin (junit-10.xsd) describes it:
  /// it permits `skipped` only in a test suite, and times in decimal digits without an exponent.
  package var junit: String {
    let counts =
      "tests=\"\(results.count)\" failures=\"\(count(.failed))\" "
      + "errors=\"\(count(.error))\" time=\"\(XML.seconds(seconds))\""
    let lines =
      [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<testsuites \(counts)>",
        "  <testsuite name=\"sandboxctl scenario\" \(counts) skipped=\"\(count(.skipped))\">",
      ] + results.map(\.junit)
      + ["  </testsuite>", "</testsuites>"]
    return lines.joined(separator: "\n") + "\n"
  }
}

/// Text in XML documents.
private enum XML {
  /// Returns seconds with three decimals, at least 0.
  static func seconds(_ seconds: Double) -> String {
    let milliseconds = Int64(max(0, min(seconds, 1e12)) * 1000)
    let decimals = String(milliseconds % 1000)
    return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - decimals.count) + decimals
  }

  /// Returns a text in which the characters with a special meaning in XML are escaped, and those
  /// that XML does not permit are replaced (Extensible Markup Language 1.0, 2.2).
  static func text(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "\n", "\t": escaped += "&#\(scalar.value);"
      case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF:
        escaped += "?"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
