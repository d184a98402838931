/// Whether data may be deleted to gain space.
package enum PurgeDisposition: Sendable, Hashable, BitwiseCopyable {
  /// It is never deleted.
  case never
  /// It may be deleted, on these terms.
  case allowed(PurgeTerms)

  /// It may be deleted at any time, before all other data.
  package static let anytime = PurgeDisposition.allowed(PurgeTerms(order: 0, when: .anytime))

  /// The terms, or nil if it may not be deleted.
  package var terms: PurgeTerms? { if case .allowed(let terms) = self { terms } else { nil } }
}

/// The terms on which data may be deleted to gain space.
package struct PurgeTerms: Sendable, Hashable, BitwiseCopyable {
  /// The purge order: lower numbers are deleted first.
  package var order: UInt16
  /// The time at which it may be deleted.
  package var when: Moment
  /// The unit of deletion.
  package var unit: Unit
  /// The method of deletion.
  package var action: Action

  /// The largest order in a policy.
  package static let maximumOrder: UInt16 = 999

  /// Creates terms.
  package init(
    order: UInt16, when: Moment = .underPressure, unit: Unit = .file, action: Action = .unlink
  ) {
    self.order = order
    self.when = when
    self.unit = unit
    self.action = action
  }

  /// The time at which data may be deleted.
  package enum Moment: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
    /// At any time.
    case anytime
    /// Only if space is low.
    case underPressure = "under-pressure"
  }

  /// The unit of deletion.
  package enum Unit: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
    /// Each file individually, a database with its log.
    case file
    /// The directory with all its content.
    case directory
  }

  /// The method of deletion.
  package enum Action: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
    /// The file is deleted.
    case unlink
    /// The file is truncated to length 0.
    case truncate
  }
}

extension PurgeDisposition: CustomStringConvertible {
  /// The disposition in the syntax of policy files.
  package var description: String {
    guard case .allowed(let terms) = self else { return "never" }
    if self == .anytime { return "anytime" }
    var parts = ["order: \(terms.order)", "when: \(terms.when.rawValue)"]
    if terms.unit != .file { parts.append("unit: \(terms.unit.rawValue)") }
    if terms.action != .unlink { parts.append("action: \(terms.action.rawValue)") }
    return "{\(parts.joined(separator: ", "))}"
  }
}
