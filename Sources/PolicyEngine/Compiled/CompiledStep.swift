internal import SandboxModel

/// A rule or a mark in the one order in which all layers' are applied.
struct CompiledStep: Sendable {
  /// Whence it comes.
  let origin: Origin
  /// The layer that it belongs to.
  let layer: Int
  /// The containers in which it counts.
  let scope: Scope
  /// What it does.
  let operation: Operation

  enum Origin: Sendable {
    case rule(Rule)
    case marker(Marker)
  }

  /// Whose containers a rule is for.
  enum Scope: Sendable, Hashable {
    case all
    case app(String)
    case group(String)
  }

  var rule: Rule? { if case .rule(let rule) = origin { rule } else { nil } }
  var marker: Marker? { if case .marker(let marker) = origin { marker } else { nil } }

  var id: String {
    switch origin {
    case .rule(let rule): rule.id
    case .marker(let marker): marker.id
    }
  }

  var location: PolicyLocation {
    switch origin {
    case .rule(let rule): rule.location
    case .marker(let marker): marker.location
    }
  }
}
