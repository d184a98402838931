/// A layer of a policy: rules, then marks. A later layer overrides an earlier one.
public struct PolicyLayer: Sendable {
  /// What output calls it: the policy's name, the file of an overlay, or the option.
  public let name: String
  /// Whence it comes.
  public let origin: PolicyOrigin
  /// What it is.
  public let part: Part
  let rules: [(scope: CompiledStep.Scope, rules: [Rule])]
  let markers: [Marker]

  /// The parts that a policy's layers are made of, in their order.
  public enum Part: String, Sendable, Hashable, CaseIterable {
    /// The rules and marks of a file of the chain.
    case chain
    /// The `finally` part of a file of the chain.
    case finally
    /// An overlay.
    case overlay
    /// A file named on the command line.
    case file
    /// Patterns of the command line, `--exclude` and `--include`.
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
