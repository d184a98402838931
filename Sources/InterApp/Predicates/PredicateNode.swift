/// A part of a predicate that is true or false. Chains of AND and OR have any number of parts, so
/// that the depth is that of the text's parentheses.
indirect enum PredicateNode: Hashable, Sendable {
  case constant(Bool)
  case all([PredicateNode])
  case any([PredicateNode])
  case not(PredicateNode)
  case comparison(PredicateComparison)
}

/// A comparison of two expressions.
struct PredicateComparison: Hashable, Sendable {
  let quantifier: Quantifier?
  let left: PredicateExpression
  let operation: Operation
  /// Whether case is ignored (the option `c`).
  let ignoresCase: Bool
  /// Whether diacritics are ignored (the option `d`).
  let ignoresMarks: Bool
  let right: PredicateExpression
  /// The offsets of its first byte, of its operator, and of the byte after it.
  let start: Int
  let sign: Int
  let end: Int

  /// The condition on the elements of a list on the left.
  enum Quantifier: Hashable, Sendable {
    case any
    case all
    case none
  }

  enum Operation: String, Hashable, Sendable {
    case equal = "=="
    case unequal = "!="
    case less = "<"
    case atMost = "<="
    case greater = ">"
    case atLeast = ">="
    case between = "BETWEEN"
    case `in` = "IN"
    case contains = "CONTAINS"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case like = "LIKE"
    case conformsTo = "UTI-CONFORMS-TO"
    case equalsType = "UTI-EQUALS"

    /// Whether options in brackets may follow.
    var hasOptions: Bool {
      switch self {
      case .equal, .unequal, .in, .contains, .beginsWith, .endsWith, .like: true
      default: false
      }
    }
  }
}

/// A part of a predicate that has a value.
indirect enum PredicateExpression: Hashable, Sendable {
  case value(PredicateValue)
  case list([PredicateExpression])
  /// The object of the predicate: the shared items.
  case object
  /// The value of a variable, with the offset of its name.
  case variable(String, offset: Int)
  /// The elements of a list for which a predicate is true.
  case subquery(Subquery)
  /// A value, and the steps that lead from it to another one.
  case path(PredicateExpression, [Step])
  /// Values that are added and subtracted, or multiplied and divided, in order.
  case arithmetic(PredicateExpression, [Term])

  struct Subquery: Hashable, Sendable {
    let list: PredicateExpression
    let variable: String
    let predicate: PredicateNode
    let offset: Int
  }

  /// A step of a key path, with its offset in the text.
  struct Step: Hashable, Sendable {
    let kind: Kind
    let offset: Int

    enum Kind: Hashable, Sendable {
      case key(String)
      /// `@count`, or `[SIZE]`.
      case count
      case first
      case last
      case index(PredicateExpression)
    }
  }

  struct Term: Hashable, Sendable {
    /// `+`, `-`, `*` or `/`.
    let sign: UInt8
    let value: PredicateExpression
    let offset: Int
  }
}

/// A value of an expression.
enum PredicateValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case text(String)
  case list([PredicateValue])
  case object(PredicateObject)
}

/// An object of a shared context, by its position.
enum PredicateObject: Hashable, Sendable {
  case context
  case item(Int)
  /// An attachment by its number among all attachments.
  case attachment(Int)
}
