class Sightline < Formula
  desc "Language server for AI coding agents: editor context, access rules and checkpoints"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/sightline-v@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/sightline-v@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/sightline-v@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/sightline-v@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "sightline", "sightline-gateway"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/sightline.bash" => "sightline"
    fish_completion.install "completions/sightline.fish"
    zsh_completion.install "completions/sightline.zsh" => "_sightline"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sightline --version")
  end
end
