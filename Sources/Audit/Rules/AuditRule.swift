/// The severity of a finding, named as in SARIF (version 2.1.0, section 3.27.10).
package enum AuditLevel: String, CaseIterable, Sendable, Hashable, Comparable {
  /// Advice that costs space, power or clarity if it is ignored.
  case note
  /// Data is at risk in some situations, or the app may be refused by the store.
  case warning
  /// Data is lost by an ordinary event, or the platform does not load a part of the app.
  case error

  package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .note: 0
    case .warning: 1
    case .error: 2
    }
  }
}

/// A rule of the audit. Text output, JSON, SARIF and docs/audit.md all have the rules in `all`.
package struct AuditRule: Sendable, Hashable {
  /// The stable identifier: words joined by hyphens.
  package let id: String
  package let level: AuditLevel
  /// A clause about the findings: "user data is marked as excluded from backups".
  package let title: String
  /// The reason and the remedy for the app's developer, in one or two sentences.
  package let advice: String
  /// The title and section of the guide on which the rule is based.
  package let source: String
  /// The address of that guide.
  package let url: String

  /// All rules, in the order of output.
  package static let all: [AuditRule] = ofPlaces + ofMarks + ofFiles + ofBundles

  /// Returns the rule with an identifier, or nil.
  package static func named(_ id: String) -> AuditRule? { all.first { $0.id == id } }

  /// The name in SARIF: the identifier's words, each with a capital.
  package var name: String {
    id.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }
}
