/// A token of a predicate's text.
struct PredicateToken: Hashable {
  let kind: Kind
  /// The offsets of its first byte and of the byte after it.
  let start: Int
  let end: Int

  enum Kind: Hashable {
    /// A reserved word, in upper case.
    case word(Word)
    /// A name that is not reserved, or one after `#`.
    case name(String)
    /// A name after `$`.
    case variable(String)
    /// A name after `@`, for example `count`.
    case function(String)
    case text(String)
    case number(Double)
    /// A comparison by a sign.
    case sign(PredicateComparison.Operation)
    /// `(`, `)`, `{`, `}`, `[`, `]`, `,`, `.`, `+`, `-`, `*` or `/`.
    case mark(UInt8)
    case end
  }

  /// A reserved word (Predicate Programming Guide, Predicate Format String Syntax, Reserved Words).
  enum Word: String, CaseIterable {
    case and = "AND"
    case or = "OR"
    case not = "NOT"
    case any = "ANY"
    case some = "SOME"
    case all = "ALL"
    case none = "NONE"
    case `in` = "IN"
    case like = "LIKE"
    case matches = "MATCHES"
    case contains = "CONTAINS"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case between = "BETWEEN"
    case conformsTo = "UTI-CONFORMS-TO"
    case equalsType = "UTI-EQUALS"
    case null = "NULL"
    case `nil` = "NIL"
    case `self` = "SELF"
    case yes = "YES"
    case `true` = "TRUE"
    case no = "NO"
    case `false` = "FALSE"
    case first = "FIRST"
    case last = "LAST"
    case size = "SIZE"
    case subquery = "SUBQUERY"
    case truePredicate = "TRUEPREDICATE"
    case falsePredicate = "FALSEPREDICATE"
    case caseInsensitive = "CASEINSENSITIVE"
    case ci = "CI"
    case anyKey = "ANYKEY"
    case fetch = "FETCH"
    case cast = "CAST"
    case ternary = "TERNARY"
    case function = "FUNCTION"

    private static let words = Dictionary(
      uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })

    /// Returns the reserved word with a name, ignoring case, or nil.
    init?(named name: String) {
      guard let word = Self.words[name.uppercased()] else { return nil }
      self = word
    }
  }
}
