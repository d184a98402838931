internal import SystemIO

/// The result of a predicate for attachments.
package struct PredicateResult: Sendable, Hashable {
  package let holds: Bool
  /// The comparisons that are false, in words; empty if the predicate is true.
  package let reasons: [String]
  /// The numbers of the attachments that its subqueries examined and for which none of them is
  /// true.
  package let unmatched: [Int]
}

extension ActivationPredicate {
  /// Evaluates the predicate for attachments.
  ///
  /// - Throws: `PredicateFault` for a key that objects do not have, values that cannot be compared,
  ///   and if the evaluation takes more than `PredicateEvaluation.stepLimit` steps.
  package func result(
    for attachments: SharedAttachments, in tree: TypeTree
  ) throws(PredicateFault) -> PredicateResult {
    var evaluation = PredicateEvaluation(self, of: attachments, in: tree)
    let holds = try evaluation.holds(root)
    let unmatched = evaluation.examined.subtracting(evaluation.matched).sorted()
    if holds { return PredicateResult(holds: true, reasons: [], unmatched: unmatched) }
    var explanation = PredicateEvaluation(self, of: attachments, in: tree)
    return PredicateResult(
      holds: false, reasons: try explanation.reasons(against: root), unmatched: unmatched)
  }
}

extension PredicateEvaluation {
  /// The maximum number of alternatives of an OR that are explained.
  private static let explainedLimit = 3

  /// Returns the reasons why a part is false. Parts inside subqueries are not explained.
  mutating func reasons(against node: PredicateNode) throws(PredicateFault) -> [String] {
    switch node {
    case .constant: return ["the predicate accepts nothing"]
    case .all(let parts):
      for part in parts {
        if try !holds(part) { return try reasons(against: part) }
      }
      return []
    case .any(let parts):
      var found: [String] = []
      for part in parts.prefix(Self.explainedLimit) { found += try reasons(against: part) }
      let more = parts.count - Self.explainedLimit
      return more > 0 ? found + ["nor does any of \(more) more alternatives"] : found
    case .not(.comparison(let comparison)):
      return ["'\(excerpt(comparison))' holds, and NOT stands before it (\(position(comparison)))"]
    case .not: return ["the part after NOT holds"]
    case .comparison(let comparison):
      let left = try value(of: comparison.left)
      let right = try value(of: comparison.right)
      return [
        "'\(excerpt(comparison))' does not hold: \(left.shown) \(comparison.operation.rawValue) "
          + "\(right.shown) (\(position(comparison)))"
      ]
    }
  }

  private func excerpt(_ comparison: PredicateComparison) -> String {
    predicate.excerpt(comparison.start..<comparison.end)
  }

  private func position(_ comparison: PredicateComparison) -> String {
    PredicateFault("", at: comparison.start, in: predicate.text).position
  }
}

extension PredicateValue {
  /// The value in a few words.
  var shown: String {
    switch self {
    case .null: "NULL"
    case .bool(let value): value ? "TRUE" : "FALSE"
    case .number(let value):
      value == value.rounded() && value.magnitude < 1e15 ? "\(Int64(value))" : "\(value)"
    case .text(let text): "\"\(String(text.prefix(40)).shownOnOneLine)\""
    case .list(let list):
      list.count == 1 ? "a list of 1 element" : "a list of \(list.count) elements"
    case .object: "an object"
    }
  }
}
