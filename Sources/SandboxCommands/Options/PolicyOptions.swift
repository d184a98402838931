internal import ArgumentParser
internal import BuiltinPolicies
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Which policy a command follows.
struct PolicyChoice: ParsableArguments {
  @Option(
    name: .customLong("policy"),
    help: ArgumentHelp(
      "A policy by name instead of the layout's own, or a file laid over it; may be repeated.",
      valueName: "name|file"))
  var policies: [ByteString] = []

  /// Compiles the policy for a layout; where none is named that of an earlier decision, if it is
  /// known here.
  func compile(
    for layout: Layout, version: OSVersion? = nil, patterns: [CommandLinePattern] = [],
    orElse earlier: String? = nil
  ) throws -> CompiledPolicy {
    // What is no text names no policy, and is told of as it is shown.
    let named = policies.last { !Self.isFile($0) }.map { $0.utf8 ?? $0.description }
    let library = try PolicyFiles.library(
      policy: named ?? earlier, layout: layout, extra: policies.filter(Self.isFile))
    let known = earlier.flatMap { library.policy($0) == nil ? nil : $0 }
    return try library.compile(
      PolicyRequest(
        policy: named ?? known, layout: layout, osVersion: version,
        patterns: patterns))
  }

  private static func isFile(_ word: ByteString) -> Bool {
    word.bytes.contains(UInt8(ascii: "/")) || word.hasSuffix(".yaml") || word.hasSuffix(".yml")
  }
}

/// By which rules a command decides.
struct PolicyOptions: ParsableArguments {
  @OptionGroup var choice: PolicyChoice

  @Option(
    help: ArgumentHelp(
      "Leave out what matches, by its path in the folder: x, or **/x at any depth; may be repeated.",
      valueName: "pattern"))
  var exclude: [ByteString] = []

  @Option(
    help: ArgumentHelp(
      "Keep what matches, whatever the policy and --exclude say; may be repeated.",
      valueName: "pattern"))
  var include: [ByteString] = []

  @Option(
    help: ArgumentHelp(
      "The platform's version, where the device does not tell.",
      valueName: "version"))
  var osVersion: String?

  /// Compiles the policy for a device. A version that nothing tells counts as the newest, which is
  /// said where a mark depends on it.
  func compile(
    for device: Device, _ output: OutputOptions, _ console: Console,
    also patterns: [CommandLinePattern] = []
  ) throws -> CompiledPolicy {
    let policy = try compile(
      for: device.layout, version: device.osVersion?.utf8, also: patterns)
    if policy.osVersion == nil, !output.quiet,
      policy.markers.contains(where: { $0.versions != .all })
    {
      console.note(
        "the device does not tell its OS version: the newest is assumed; '--os-version' says it")
    }
    return policy
  }

  /// Compiles the policy for a layout.
  func compile(
    for layout: Layout, version: String?, also patterns: [CommandLinePattern] = []
  ) throws -> CompiledPolicy {
    try choice.compile(
      for: layout, version: try (osVersion ?? version).map(Self.parsed),
      patterns: exclude.map { .exclude(PatternText($0)) } + patterns
        + include.map { .include(PatternText($0)) })
  }

  private static func parsed(_ text: String) throws -> OSVersion {
    guard let version = OSVersion(text) else {
      throw UsageError(
        "'\(ByteString(text))' is no version", hint: "write it as numbers with dots: 16.4")
    }
    return version
  }
}

extension PatternText {
  init(_ word: ByteString) { self.init(Array(word.bytes), shown: word.description) }
}
