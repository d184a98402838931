internal import ArgumentParser
internal import PolicyEngine

/// Which of a policy's answers is asked for.
struct VerdictOptions: ParsableArguments {
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "Where a backup would go: cloud or unencrypted; may be repeated. Without it: a local, "
        + "encrypted repository.", valueName: "destination"))
  var destinations: [String] = []

  @Flag(help: "Answer as the platform itself does, not as sandboxctl does.")
  var asPlatform = false

  /// The view that is asked for.
  var view: VerdictView { asPlatform ? .platform : .keep }

  /// The destination that is asked for.
  var destination: Destination {
    get throws {
      var destination = Destination()
      for word in destinations {
        switch word {
        case "cloud": destination.isCloud = true
        case "unencrypted": destination.isUnencrypted = true
        default:
          throw UsageError(
            "there is no destination '\(word)'", hint: "choose 'cloud' or 'unencrypted'")
        }
      }
      return destination
    }
  }
}
