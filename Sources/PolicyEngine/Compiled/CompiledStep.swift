internal import SandboxModel

/// A rule or marker in the order in which the steps of all layers are applied.
struct CompiledStep: Sendable {
  /// The rule or marker.
  let origin: Origin
  /// The index of its layer.
  let layer: Int
  /// The containers to which it applies.
  let scope: Scope
  /// Its effect.
  let operation: Operation

  enum Origin: Sendable {
    case rule(Rule)
    case marker(Marker)
  }

  /// The containers to which a rule applies.
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
