"""One DynamicCache is carried from turn to turn and never cropped: keys and values of all turns stay."""
import torch, probe
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4,
                     num_key_value_heads=4, max_position_embeddings=8192, pad_token_id=0, bos_token_id=1, eos_token_id=2)
model = LlamaForCausalLM(config).cuda().eval()
past = None
probe.start()
with torch.no_grad():
    for i in range(probe.steps(60)):
        tokens = torch.randint(3, 1000, (2, 48), device="cuda")
        out = model(tokens, past_key_values=past, use_cache=True)
        past = out.past_key_values  # LEAK
        out.logits[:, -1].argmax(-1).tolist()
        probe.step(i)
        if i in (19, 39, 59):
            probe.snap(f"step{i + 1}")
probe.done(kind="kv-cache")
