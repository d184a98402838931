internal import ArgumentParser
internal import BuiltinPolicies
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The policy that a command uses.
struct PolicyChoice: ParsableArguments {
  @Option(
    name: .customLong("policy"),
    help: ArgumentHelp(
      "A policy to use instead of the layout's own, by name, or a file to lay over the "
        + "policy; may be repeated.",
      valueName: "name|file"))
  var policies: [ByteString] = []

  /// Compiles the policy for a layout. If none is named, `earlier` is used if it is known here.
  func compile(
    for layout: Layout, version: OSVersion? = nil, patterns: [CommandLinePattern] = [],
    orElse earlier: String? = nil
  ) throws -> CompiledPolicy {
    // An argument that is not UTF-8 names no policy; the error shows its description.
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

/// The policy, patterns and platform version that a command uses.
struct PolicyOptions: ParsableArguments {
  @OptionGroup var choice: PolicyChoice

  @Option(
    help: ArgumentHelp(
      "Exclude entries whose path in the container matches: x, or **/x at any depth; may "
        + "be repeated.",
      valueName: "pattern"))
  var exclude: [ByteString] = []

  @Option(
    help: ArgumentHelp(
      "Keep entries that match, regardless of the policy and of --exclude; may be "
        + "repeated.",
      valueName: "pattern"))
  var include: [ByteString] = []

  @Option(
    help: ArgumentHelp(
      "The version of the platform (default: the device's).",
      valueName: "version"))
  var osVersion: String?

  /// Compiles the policy for a device. An unknown version counts as the newest, with a note if a
  /// mark depends on it.
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
        "the device's OS version is unknown: the newest is assumed; '--os-version' sets it")
    }
    return policy
  }

  /// Compiles the policy for a layout.
  func compile(
    for layout: Layout, version: String?, also patterns: [CommandLinePattern] = []
  ) throws -> CompiledPolicy {
    try choice.compile(
      for: layout, version: try (osVersion ?? version).map(Self.parsed),
      patterns: exclude.map { .exclude(Pattern.Text($0)) } + patterns
        + include.map { .include(Pattern.Text($0)) })
  }

  private static func parsed(_ text: String) throws -> OSVersion {
    guard let version = OSVersion(text) else {
      throw UsageError(
        "'\(ByteString(text))' is not a version", hint: "write numbers with dots, for example 16.4")
    }
    return version
  }
}

extension Pattern.Text {
  init(_ word: ByteString) { self.init(Array(word.bytes), shown: word.description) }
}
