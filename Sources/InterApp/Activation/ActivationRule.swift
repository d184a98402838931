internal import Codecs
internal import SystemIO

/// The rule by which a Share or Action extension is offered for attachments
/// (NSExtensionActivationRule).
package enum ActivationRule: Sendable, Hashable {
  case dictionary(ActivationDictionary)
  case predicate(ActivationPredicate)
  /// A predicate outside the supported grammar.
  case unsupported(PredicateFault)
  /// The extension has no rule.
  case missing
  /// The value is of a wrong type, whose name is given.
  case wrongType(String)

  static let key = "NSExtensionActivationRule"

  /// Reads the rule in an extension's attributes.
  init(_ attributes: PropertyList?, at key: String, _ reader: inout DeclarationReader) {
    let place = "\(key).\(Self.key)"
    switch attributes?[Self.key] {
    case nil: self = .missing
    case .some(let value) where value.dictionaryValue != nil:
      self = .dictionary(ActivationDictionary(value, at: place, &reader))
    case .string(let text):
      do throws(PredicateFault) {
        let predicate = try ActivationPredicate(reading: text)
        if predicate.isAlwaysTrue {
          reader.note(
            place,
            "TRUEPREDICATE is for development only; the App Store rejects it (App Extension "
              + "Programming Guide)")
        }
        self = .predicate(predicate)
      } catch {
        reader.warn(place, "the predicate is not evaluated: \(error.reason), \(error.position)")
        self = .unsupported(error)
      }
    case .some(let value):
      reader.warn(place, "it is of the type \(value.kind), not a dictionary or a string")
      self = .wrongType(value.kind)
    }
  }

  /// The name of the rule's form in output.
  package var name: String {
    switch self {
    case .dictionary: "dictionary"
    case .predicate, .unsupported: "predicate"
    case .missing: "missing"
    case .wrongType: "invalid"
    }
  }
}

/// Whether a rule offers an extension for attachments, and why.
package struct ActivationResult: Sendable, Hashable {
  package let verdict: Verdict
  /// The reasons, sentences for people.
  package let reasons: [String]
  /// The numbers of attachments that a dictionary limits.
  package var counts: [ActivationDictionary.Count] = []
  /// The attachments that match no part of the rule, by their numbers.
  package var unmatched: [Int] = []
  /// The position in a predicate that is not evaluated.
  package var fault: PredicateFault?

  package enum Verdict: String, Sendable, Hashable {
    case offered
    case notOffered = "not-offered"
    /// The rule is missing, invalid, or a predicate outside the supported grammar.
    case notEvaluated = "not-evaluated"
    /// The request excludes the extension.
    case excluded
  }
}

extension ActivationRule {
  /// Evaluates the rule.
  package func result(
    for attachments: SharedAttachments, in tree: TypeTree
  ) -> ActivationResult {
    switch self {
    case .dictionary(let rule): return result(of: rule, attachments, tree)
    case .predicate(let predicate):
      do throws(PredicateFault) {
        let result = try predicate.result(for: attachments, in: tree)
        let names = result.unmatched.map { attachments.all[$0].shown }
        return ActivationResult(
          verdict: result.holds ? .offered : .notOffered,
          reasons: result.holds
            ? [predicate.isAlwaysTrue ? "TRUEPREDICATE accepts anything" : "the predicate holds"]
            : result.reasons + names.map { "\($0) matches no subquery" },
          unmatched: result.unmatched)
      } catch { return Self.notEvaluated(error) }
    case .unsupported(let fault): return Self.notEvaluated(fault)
    case .missing:
      return ActivationResult(
        verdict: .notEvaluated, reasons: ["not evaluated: it has no \(Self.key)"])
    case .wrongType(let kind):
      return ActivationResult(
        verdict: .notEvaluated,
        reasons: ["not evaluated: \(Self.key) is of the type \(kind), not a dictionary or a string"]
      )
    }
  }

  private static func notEvaluated(_ fault: PredicateFault) -> ActivationResult {
    ActivationResult(
      verdict: .notEvaluated, reasons: ["not evaluated: \(fault.reason), \(fault.position)"],
      fault: fault)
  }

  private func result(
    of rule: ActivationDictionary, _ attachments: SharedAttachments, _ tree: TypeTree
  ) -> ActivationResult {
    let result = rule.result(for: attachments, in: tree)
    if !result.faults.isEmpty {
      return ActivationResult(
        verdict: .notOffered, reasons: result.faults, counts: result.counts,
        unmatched: result.unmatched)
    }
    let reason =
      result.unmatched.isEmpty
      ? "all attachments are accepted" : "an attachment is accepted, which is enough in version 2"
    return ActivationResult(
      verdict: .offered, reasons: [reason], counts: result.counts, unmatched: result.unmatched)
  }
}
