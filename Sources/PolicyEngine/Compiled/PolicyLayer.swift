/// A layer of a policy: rules, then marks. A later layer overrides an earlier one.
package struct PolicyLayer: Sendable {
  /// The name in output: of the policy, of the overlay's file, or of the option.
  package let name: String
  /// The origin of its file.
  package let origin: PolicySource.Origin
  /// The part of the policy that it represents.
  package let part: Part
  let rules: [(scope: CompiledStep.Scope, rules: [Rule])]
  let markers: [Marker]

  /// The parts of a policy that form layers, in order.
  package enum Part: String, Sendable, Hashable, CaseIterable {
    /// The rules and markers of a file in the chain.
    case chain
    /// The `finally` section of a file in the chain.
    case finally
    /// An overlay.
    case overlay
    /// A file given on the command line.
    case file
    /// Patterns given on the command line with `--exclude` and `--include`.
    case patterns
  }

  init(_ document: PolicyDocument, _ part: Part) {
    name = document.name ?? document.source.name
    origin = document.source.origin
    self.part = part
    if part == .finally {
      rules = [(.all, document.finalRules)]
      markers = document.finalMarkers
    } else {
      rules =
        [(.all, document.rules)] + document.apps.map { (.app($0.owner), $0.rules) }
        + document.groups.map { (.group($0.owner), $0.rules) }
      markers = document.markers
    }
  }

  init(patterns: [Rule]) {
    name = "--exclude, --include"
    origin = .commandLine
    part = .patterns
    rules = [(.all, patterns)]
    markers = []
  }
}
